//! Threads of a process that ran already when the runtime came: their contexts, and their first steps in the runtime.
//!
//! The controller holds all threads. One of them runs `prepare` and parks; then each is sent through the gate to `begin`.
//! Where a thread may be led by the controller is published in every process, because any may be left later.

use super::stage::program_signal_stack;
use super::{begin, stage};
use crate::buffer::Shared;
use crate::context::ThreadContext;
use crate::cpu::context::Registers;
use crate::cpu::context::AT_ENTRY;
use crate::cpu::dispatch::leave;
use crate::cpu::{gate, parking};
use crate::dispatch::flow::rseq;
use crate::instrument::ENGINE;
use crate::protocol::{ControlBlock, ThreadState};
use crate::signal::table::SIGNALS;
use crate::sys::calls::{gettid, set_signal_mask};
use crate::sys::kernel::SIGTRAP;
use crate::thread::block::set_signal_stack;
use crate::thread::THREADS;
use core::mem::offset_of;

/// No slot was free, or memory is used up.
pub struct NoRoom;

fn address_of(label: unsafe extern "C" fn()) -> u64 {
    label as *const () as u64
}

/// Tells the controller what it has to know to lead threads in and out; how many threads the process has already.
///
/// # Safety
/// The control block at `address` must be as the controller made it, and no other thread may run.
pub unsafe fn publish(address: u64) -> u32 {
    // SAFETY: the caller promises the block; nobody else uses it now.
    let block = unsafe { &mut *(address as *mut ControlBlock) };
    block.attach_pc = address_of(gate::clew_gate_attach);
    block.parked_pc = address_of(parking::clew_parked);
    block.handover_pc = address_of(parking::clew_handover);
    block.leave_pc = address_of(leave::clew_leave);
    block.trap_action = SIGNALS.lock().address_of(SIGTRAP);
    stage::set_block(block);
    block.syscall_return_pc = address_of(gate::clew_syscall_return);
    block.syscall_again_pc = address_of(gate::clew_syscall_again_pending);
    block.gates_start = address_of(gate::clew_gate_exit);
    block.gates_end = address_of(gate::clew_gates_end);
    block.call_pc = address_of(parking::clew_controller_call);
    block.pending_offset = offset_of!(ThreadContext, signals.pending) as u32;
    block.call_code_offset = offset_of!(ThreadContext, call.code) as u32;
    block.tid_offset = offset_of!(ThreadContext, tid) as u32;
    block.native_offset = offset_of!(ThreadContext, native.runs) as u32;
    block.signal_stack_offset = offset_of!(ThreadContext, signals.stack) as u32;
    block.thread_count
}

/// Makes a context for each thread of the control block at `address`.
///
/// # Safety
/// The block and its table must be as the controller made them, and all other threads must be stopped.
pub unsafe fn prepare(address: u64, shared: Shared) -> Result<(), NoRoom> {
    // SAFETY: the caller promises the block; nobody writes it now.
    let block = unsafe { &*(address as *const ControlBlock) };
    // SAFETY: as above; the table holds so many entries.
    let states =
        unsafe { core::slice::from_raw_parts_mut(block.threads as *mut ThreadState, block.thread_count as usize) };
    for state in states.iter().filter(|state| state.rseq_area != 0) {
        rseq::note_signature(state.rseq_signature);
    }
    let (table, table_mask) = ENGINE.lock().cache.pairs.location();
    let mut threads = THREADS.lock();
    for state in states {
        let context = threads.take(shared).ok_or(NoRoom)?;
        context.registers = Registers::of_thread(state);
        context.process.start_mask = state.mask;
        context.call.code = state.call_code;
        context.call.pc = context.registers.pc;
        context.tid = state.tid;
        context.capture.begins_captured = state.is_captured;
        context.capture.has_handed_calls = state.has_calls;
        if state.rseq_area != 0 {
            rseq::note_area(context, state.rseq_area);
        }
        context.gate.pair_table = table;
        context.gate.pair_mask = table_mask;
        state.context = context.self_address;
        state.stack_top = context.gate.stack_top;
        let (slot, tid) = (context.slot, context.tid);
        threads.set_tid(slot, tid);
    }
    Ok(())
}

/// What the thread that prepared everything does if it was left alone then: it goes on as if nothing had been.
///
/// # Safety
/// The block and its table must be as `prepare` left them.
pub unsafe fn abandon_first(address: u64) -> ! {
    // SAFETY: the caller promises the block and the table.
    let states = unsafe {
        let block = &*(address as *const ControlBlock);
        core::slice::from_raw_parts(block.threads as *const ThreadState, block.thread_count as usize)
    };
    let tid = gettid();
    let address = states.iter().find(|state| state.tid == tid).map_or(0, |state| state.context);
    // SAFETY: `prepare` made a context for every thread; no other thread uses this one's.
    let context = unsafe { &mut *(address as *mut ThreadContext) };
    // SAFETY: written by the entry, before this thread came here, and never again.
    context.vector = unsafe { AT_ENTRY };
    stage::abandon(context)
}

/// The first thing that a thread does here: all signals blocked, its vector state just saved.
pub fn begin(context: &mut ThreadContext) {
    if !stage::is_entered() {
        stage::abandon(context);
    }
    SIGNALS.lock().take_all();
    context.signals.stack = program_signal_stack();
    set_signal_stack(context);
    begin::begin(context, 0);
    if core::mem::take(&mut context.capture.begins_captured) != 0 {
        context.capture.left_pc = context.registers.pc;
    }
    let mask = context.note_mask(context.process.start_mask);
    // Before its system call is made anew no call of the runtime's may be one that the kernel has a restart function for, nor
    // return from a signal: the kernel would forget how long the thread has waited already (kernel/signal.c,
    // restart_syscall).
    set_signal_mask(mask);
    if context.call.code == 0 {
        rseq::learn_named(context);
    }
}
