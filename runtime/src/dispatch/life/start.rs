//! The runtime's first steps in a process: from the controller's start block to the first thread's first instruction.

use super::running::{stamp_start, tell_running};
use super::{attach, begin, hidden, process};
use crate::buffer::{Shared, WaitLimit};
use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::context::Registers;
use crate::cpu::features::{self, Features};
use crate::cpu::private_range::set_private_range;
use crate::cpu::signal::image::set_image_range;
use crate::cpu::sys::kernel::USER_END;
use crate::cpu::sys::number;
use crate::cpu::thread::create;
use crate::cpu::translate::Mangler;
use crate::cpu::{enter_block, parking};
use crate::dispatch::proc::proc_reads;
use crate::dispatch::run::dispatch;
use crate::instrument::ENGINE;
use crate::protocol::{error_code, runtime_state, StartBlock, StatusPage, PAGE_BYTES};
use crate::signal::table::SIGNALS;
use crate::sys::calls::{futex_wait, gettid, limit_of, set_signal_mask, syscall};
use crate::sys::kernel::SIGTRAP;
use crate::sys::{filter, heap};
use crate::thread::block::set_signal_stack;
use crate::thread::THREADS;
use core::sync::atomic::{AtomicU32, Ordering};

/// Takes the process over. Called once, on the image's boot stack.
///
/// # Safety
/// `block` must be the start block that the controller filled for this very process.
pub unsafe fn start(block: &'static StartBlock) -> ! {
    // SAFETY: the controller mapped the shared memory there.
    let Some(shared) = (unsafe { Shared::open(block.shared_base, block.shared_bytes, block.anchor_base) }) else {
        // No page to complain on that this build understands: a numbered exit.
        exit(120 + error_code::BAD_HEADER as u64);
    };
    let mask = set_signal_mask(u64::MAX);
    // SAFETY: the controller made the block; no other thread runs.
    let n_threads = unsafe { attach::publish(block.control_block) };
    heap::initialize(block.heap_base, block.heap_bytes);
    set_private_range(block.private_base, block.private_base + block.private_bytes);
    hidden::initialize(block.image_base, block.heap_base + block.heap_bytes);
    set_image_range(block.image_base, block.image_base + block.image_bytes);
    features::initialize(block, dispatch);
    process::initialize();
    {
        let mut signals = SIGNALS.lock();
        signals.learn();
        if n_threads == 0 {
            signals.take_all();
        } else {
            // What parks needs it; the rest comes with the first thread that enters.
            signals.take_without_stack(SIGTRAP);
        }
    }
    stamp_start(shared);

    if !prepare_engine(block, shared) {
        fail(n_threads, shared, error_code::OUT_OF_MEMORY, [10, 0, 0, 0]);
    }
    if n_threads != 0 {
        // SAFETY: the controller made the block and its table; all other threads are stopped.
        if unsafe { attach::prepare(block.control_block, shared) }.is_err() {
            fail(n_threads, shared, error_code::THREADS_FULL, [1, 0, 0, 0]);
        }
        tell_running(shared);
        parking::park_bare();
        // SAFETY: the block is as above; the controller was killed before it sent this thread anywhere.
        unsafe { attach::abandon_first(block.control_block) };
    }
    let Some(context) = THREADS.lock().take(shared) else {
        fail(n_threads, shared, error_code::THREADS_FULL, [0; 4]);
    };
    begin_first_thread(context, block);
    wait_for_debugger(shared);
    tell_running(shared);
    set_signal_mask(context.note_mask(mask));
    create::enter(context)
}

/// Prepares what translates. `false`: there is no memory for it.
fn prepare_engine(block: &StartBlock, shared: Shared) -> bool {
    if !filter::is_active() {
        proc_reads::look_at_inherited();
    }
    let mut engine = ENGINE.lock();
    engine.shared = shared;
    engine.prepare_mode();
    crate::dispatch::calls::call_table::handle_what(&engine);
    engine.mangler = Some(Mangler::of_start(block));
    engine.features = Features::of_processor();
    let mut high_end = 0;
    for index in 0..(block.range_count as usize).min(160) {
        let [start, end, protection] =
            [block.ranges[index * 3], block.ranges[index * 3 + 1], block.ranges[index * 3 + 2]];
        // A page of the kernel's.
        if end > USER_END {
            continue;
        }
        let [first, behind] = [start, end].map(AppPc::from_raw);
        engine.ranges.insert(first, behind, protection, true);
        engine.note_candidate(first, behind, protection);
        high_end = high_end.max(end);
    }
    let stack_floor = stack_floor(Registers::of_start(block).sp());
    engine.cache.slabs.initialize(high_end, stack_floor);
    engine.cache.pairs.initialize()
}

/// Has the process' first thread, which calls this, be in front of its first instruction.
fn begin_first_thread(context: &mut ThreadContext, block: &StartBlock) {
    context.registers = Registers::of_start(block);
    context.tid = gettid();
    // exec leaves no alternate stack, but does not say SS_DISABLE in frames, as a new thread's do (fs/exec.c,
    // setup_new_exec; include/linux/signal.h, sas_ss_reset).
    context.signals.stack.flags = 0;
    let (table, table_mask) = ENGINE.lock().cache.pairs.location();
    context.gate.pair_table = table;
    context.gate.pair_mask = table_mask;
    THREADS.lock().set_tid(context.slot, context.tid);
    enter_block(context);
    set_signal_stack(context);
    begin::begin(context, 0);
}

/// `--pause`: the controller says when to go on; if it was killed meanwhile, nobody does.
fn wait_for_debugger(shared: Shared) {
    let status: *mut StatusPage = shared.status();
    // SAFETY: the status page is mapped; the field is an aligned u32.
    let ticket = unsafe { AtomicU32::from_ptr(&raw mut (*status).pause_ticket) };
    shared.look_for_controller();
    let mut wait_limit = WaitLimit::new(shared);
    while ticket.load(Ordering::Acquire) == 1 && !wait_limit.is_alone() {
        futex_wait(ticket.as_ptr(), 1, 100_000_000, true);
    }
}

/// Where the stack may grow down to, with room to spare.
fn stack_floor(stack_pointer: u64) -> u64 {
    const RLIMIT_STACK: u64 = 3;
    let size = limit_of(RLIMIT_STACK).clamp(8 << 20, 1 << 36);
    stack_pointer.saturating_sub(size + (4 << 20)) & !(PAGE_BYTES - 1)
}

fn fail(n_threads: u32, shared: Shared, code: u32, detail: [u64; 4]) -> ! {
    shared.report_error(code, detail);
    // SAFETY: the status page is mapped; the field is an aligned u32.
    unsafe { AtomicU32::from_ptr(&raw mut (*shared.status()).state) }.store(runtime_state::FAILED, Ordering::Release);
    if n_threads != 0 {
        // The process is not the runtime's to end: the controller takes it all back.
        loop {
            parking::park_bare();
        }
    }
    exit(120 + u64::from(code))
}

fn exit(status: u64) -> ! {
    loop {
        // SAFETY: ends the process.
        unsafe { syscall(number::EXIT_GROUP, [status, 0, 0, 0, 0, 0]) };
    }
}
