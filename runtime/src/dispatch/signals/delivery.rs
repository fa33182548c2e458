//! Handing signals over to the program, and with them its mask.
//!
//! Runs on the runtime's stack, no lock held. While anything waits to be delivered the program's mask is in
//! `pending_mask` and the thread's own blocks everything but what an instruction can cause; it becomes the program's
//! again once, at the very end, so that no signal sees one that is neither.

use super::handler_edges::note_handler;
use super::masks::{give_mask, take_mask};
use crate::context::numbers::FragmentId;
use crate::context::ThreadContext;
use crate::cpu::signal::deliver::{self, Delivery};
use crate::cpu::signal::faults::{FORCED, TRAPPED};
use crate::cpu::signal::frame;
use crate::cpu::sys::calls::CALL_BYTES;
use crate::decode::places::name_of;
use crate::dispatch::apart::captures;
use crate::dispatch::apart::{away, breakpoints, written};
use crate::dispatch::flow::parts::count_part;
use crate::dispatch::life::release::{end_by, end_by_default, take_pending};
use crate::instrument::ENGINE;
use crate::protocol::{edge_kind, event_kind};
use crate::signal::table::table_of;
use crate::sys::calls::EINTR;
use crate::sys::kernel::{SigInfo, SA_RESTART, SIGSEGV, SIGTRAP, SIG_DFL, SIG_IGN, SI_KERNEL};
use crate::thread::region;
use crate::thread::registry::{write_event, writer_of};

/// Delivers a fault first, then an asynchronous signal; the context goes on in the handler.
pub fn deliver_pending(context: &mut ThreadContext) {
    let mut mask = take_mask(context);
    // Before that, the mask in place when the signal came is not always the one that let it in (sigsuspend).
    let mut is_after_fault = false;
    if context.signals.fault_pending != 0 {
        let kind = core::mem::replace(&mut context.signals.fault_pending, 0);
        let id = context.gate.fault_fragment();
        if id != FragmentId::NONE {
            let mut engine = ENGINE.lock();
            let stopped_at = context.registers.pc;
            count_part(&mut engine, context, id, stopped_at);
        }
        breakpoints::settle_fault(context);
        if kind == 1 && written::settle_fault(context) {
            // Nothing to deliver.
        } else if kind == 1 {
            let info = context.signals.fault_info;
            let details = context.signals.fault_details;
            mask = deliver_one(context, &info, mask, details, true);
            is_after_fault = true;
        } else if kind == FORCED {
            mask = force_segv(context, mask);
            is_after_fault = true;
        } else if kind == TRAPPED {
            let info = context.signals.fault_info;
            mask = force(context, &info, mask);
            is_after_fault = true;
        }
    }
    if context.is_signal_waiting() {
        let info = context.signals.pending_info;
        take_pending(context);
        if is_after_fault && mask & 1 << (info.signo - 1) != 0 {
            // The fault's handler blocks it: it waits in the kernel, as if it had come just after the fault.
            deliver::raise_again(&info);
        } else {
            // A fault's handler is interrupted at its first instruction: its mask is the program's now.
            mask = deliver_one(context, &info, mask, context.signals.fault_details, false);
        }
    }
    give_mask(context, mask);
}

/// What the kernel does where a frame can't be written or read. Returns the program's mask after it.
fn force_segv(context: &mut ThreadContext, mask: u64) -> u64 {
    let info = SigInfo { signo: SIGSEGV as i32, code: SI_KERNEL, ..SigInfo::ZERO };
    force(context, &info, mask)
}

/// Delivers SIGSEGV or SIGSYS as the kernel does where they can't be blocked or ignored (kernel/signal.c, force_sig).
/// Returns the program's mask after it.
fn force(context: &mut ThreadContext, info: &SigInfo, mask: u64) -> u64 {
    let handler = table_of(context).lock().action(info.signo as u32).handler;
    if mask & 1 << (info.signo - 1) != 0 || handler == SIG_DFL || handler == SIG_IGN {
        end_by(context, info);
    }
    deliver_one(context, info, mask, context.signals.fault_details, false)
}

/// Delivers one signal; returns the program's mask after it.
fn deliver_one(context: &mut ThreadContext, info: &SigInfo, mask: u64, details: [u64; 3], is_fault: bool) -> u64 {
    let interrupted_pc = match core::mem::take(&mut context.signals.has_fault_origin) {
        false => away::origin(context).unwrap_or(name_of(context.registers.pc)),
        true => context.signals.fault_origin,
    };
    let is_past = is_fault && core::mem::take(&mut context.signals.is_fault_past) != 0;
    let event = if is_fault { event_kind::FAULT } else { event_kind::SIGNAL };
    {
        // SAFETY: `shared` is set before any thread runs and never changes.
        let shared = unsafe { ENGINE.peek() }.shared;
        shared.add(crate::status_field!(entries_signal), 1);
        let writer = writer_of(context, shared);
        write_event(&writer, event, interrupted_pc, [info.signo as u64, info.code as u64, info.address]);
        if context.path.has_tags {
            let _engine = ENGINE.lock();
            region::note_signal(context, &writer, is_fault, info.signo as u32, interrupted_pc);
        }
    }
    if !is_fault {
        end_interrupted_call(context, info.signo as u32);
    }
    // What an instruction causes and the program blocks ends it (kernel/signal.c, force_sig_info_to_task).
    let is_fatal = is_fault && mask & 1 << (info.signo - 1) != 0;
    let (pc, is_left) = (context.registers.pc, captures::is_left(context));
    let delivery = if is_fatal { Delivery::Default } else { deliver::deliver(context, info, mask, details) };
    if !matches!(delivery, Delivery::Handler(_)) {
        frame::load_state(context);
    }
    match delivery {
        Delivery::Handler(new_mask) => {
            let (kind, fault) = match is_fault {
                true => (edge_kind::FAULT, context.gate.fault_fragment()),
                false => (edge_kind::SIGNAL, FragmentId::NONE),
            };
            captures::keep_left(context, context.registers.sp(), pc, is_left);
            note_handler(context, kind, fault, interrupted_pc);
            new_mask
        }
        // The frame of a SIGSEGV itself: the process ends (kernel/signal.c, force_sigsegv).
        Delivery::NoRoom if info.signo as u32 == SIGSEGV => end_by(context, info),
        Delivery::NoRoom => force_segv(context, mask),
        Delivery::Ignored if !is_fault => mask,
        Delivery::Ignored | Delivery::Default => {
            table_of(context).lock().restore_default(info.signo as u32);
            if is_fatal && (info.signo as u32 == SIGTRAP || is_past) {
                end_by(context, info);
            }
            if is_fault && (info.signo as u32 == SIGTRAP || is_past) {
                // A trap comes after its instruction, which is not executed again: the signal is sent instead.
                deliver::raise_again(info);
            }
            if is_fault {
                // The instruction faults again, natively and with the program's own state.
                end_by_default(context, mask);
            }
            deliver::raise_again(info);
            mask
        }
    }
}

/// A system call that the thread is still inside of, although it was interrupted for attaching or detaching, ends as the
/// kernel ends it for this signal's handler (arch/x86/kernel/signal.c, handle_signal).
fn end_interrupted_call(context: &mut ThreadContext, signal: u32) {
    const ERESTARTSYS: u32 = 512;
    const ERESTARTNOINTR: u32 = 513;
    if context.call.code == 0 || context.registers.pc != context.call.pc {
        return;
    }
    let action = table_of(context).lock().action(signal);
    if action.handler == SIG_DFL || action.handler == SIG_IGN {
        return;
    }
    let code = core::mem::take(&mut context.call.code);
    if code != ERESTARTNOINTR && (code != ERESTARTSYS || action.flags & SA_RESTART == 0) {
        context.registers.set_result(-i64::from(EINTR) as u64);
        context.registers.pc += CALL_BYTES;
    }
}
