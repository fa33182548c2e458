//! Handing signals over to the program, and with them its mask.
//!
//! Runs on the runtime's stack, no lock held. While anything waits to be delivered the program's mask is in
//! `pending_mask` and the thread's own blocks everything but what an instruction can cause; it becomes the program's
//! again once, at the very end, so that no signal sees one that is neither.

use super::exits::count_part;
use super::{breakpoints, excursion, probe_returns, written};
use crate::arch::x86_64::context::{ThreadContext, GIVES, HOLDS, PENDING_SIGNAL, STEPPING_LOCKED};
use crate::buffer::RingWriter;
use crate::cache::links::UNDELIVERED;
use crate::cache::NONE;
use crate::decode::places::name_of;
use crate::instrument::pads::DynamicEdge;
use crate::instrument::{Engine, ENGINE};
use crate::protocol::{edge_kind, end_kind, event_kind, path_event_kind, release_reason};
use crate::signal::deliver::{self, Delivery};
use crate::signal::faults::{FORCED, TRAPPED};
use crate::signal::table::{table_of, ALL_BUT_FAULTS, ALL_BUT_MEMORY_FAULTS};
use crate::signal::{frame, merging};
use crate::sys::calls::{set_signal_mask, EINTR};
use crate::sys::kernel::{
    SigInfo, DEBUG_EXCEPTION, SA_RESTART, SEGV_MAPERR, SIGSEGV, SIGSYS, SIGTRAP, SIG_DFL, SIG_IGN, SI_KERNEL,
    TRAP_TRACE,
};
use crate::thread::registry::{describe_end, write_event, writer_of};
use crate::thread::{path, region, THREADS};
use core::sync::atomic::Ordering;

/// Delivers a fault first, then an asynchronous signal; the context goes on in the handler.
pub fn deliver_pending(context: &mut ThreadContext) {
    let mut mask = take_mask(context);
    // Before that, the mask in place when the signal came is not always the one that let it in (sigsuspend).
    let mut is_after_fault = false;
    if context.fault_pending != 0 {
        let kind = core::mem::replace(&mut context.fault_pending, 0);
        let id = context.exit_id;
        if id != NONE {
            let mut engine = ENGINE.lock();
            let stopped_at = context.rip;
            count_part(&mut engine, context, id, stopped_at);
        }
        breakpoints::settle_fault(context);
        if kind == 1 && written::settle_fault(context) {
            // Nothing to deliver.
        } else if kind == 1 {
            let info = context.fault_info;
            let details = context.fault_details;
            mask = deliver_one(context, &info, mask, details, true);
            is_after_fault = true;
        } else if kind == FORCED {
            mask = force_segv(context, mask);
            is_after_fault = true;
        } else if kind == TRAPPED {
            let info = context.fault_info;
            mask = force(context, &info, mask);
            is_after_fault = true;
        }
    }
    if context.is_signal_waiting() {
        let info = context.pending_info;
        take_pending(context);
        if is_after_fault && mask & 1 << (info.signo - 1) != 0 {
            // The fault's handler blocks it: it waits in the kernel, as if it had come just after the fault.
            deliver::raise_again(&info);
        } else {
            // A fault's handler is interrupted at its first instruction: its mask is the program's now.
            mask = deliver_one(context, &info, mask, context.fault_details, false);
        }
    }
    give_mask(context, mask);
}

/// Takes the program's mask into the runtime's hands: what is sent from now on waits, until `give_mask`.
fn take_mask(context: &mut ThreadContext) -> u64 {
    let is_kept = |context: &ThreadContext| context.is_signal_waiting() || context.fault_pending != 0;
    if is_kept(context) {
        // The handler left everything blocked that needs to be.
        set_holds_mask(context, HOLDS);
        return context.program_mask(context.pending_mask);
    }
    let mask = set_signal_mask(u64::MAX);
    // Nothing can come now, so what was there a moment ago is decided.
    let is_kept = is_kept(context);
    hold_mask(context);
    context.program_mask(if is_kept { context.pending_mask } else { mask })
}

/// The thread's mask is the program's again, and what was held back comes if that lets it.
fn give_mask(context: &mut ThreadContext, mask: u64) {
    let mask = context.note_mask(mask);
    let_go_of_mask(context, mask);
}

/// From here on what is sent waits. Everything is blocked before, but what copies to and from the program's memory cause is
/// not after it: a fault that is blocked kills.
fn hold_mask(context: &mut ThreadContext) {
    set_holds_mask(context, HOLDS);
    set_signal_mask(ALL_BUT_MEMORY_FAULTS);
}

/// Undoes `hold_mask`; the thread's mask is `mask` then.
fn let_go_of_mask(context: &mut ThreadContext, mask: u64) {
    set_holds_mask(context, GIVES);
    set_signal_mask(mask);
    set_holds_mask(context, 0);
    if deliver::is_any_held(context) {
        let mask = set_signal_mask(u64::MAX);
        deliver::raise_held(context);
        set_signal_mask(mask);
    }
}

fn set_holds_mask(context: &mut ThreadContext, value: u32) {
    // SAFETY: a field of a live context, which the signal handler reads.
    unsafe { (&raw mut context.holds_mask).write_volatile(value) };
}

/// Runs what may read the program's memory by a guarded copy, whose faults must not be blocked.
pub fn with_faults<T>(context: &mut ThreadContext, read: impl FnOnce(&mut ThreadContext) -> T) -> T {
    if context.blocks_faults == 0 || context.holds_mask != 0 {
        return read(context);
    }
    let mask = set_signal_mask(u64::MAX);
    hold_mask(context);
    let result = read(context);
    let_go_of_mask(context, mask);
    result
}

/// Lets the processor execute at the context's rip, where it cannot, as far as is known: the fault comes from there. Comes back only if a
/// signal goes before, or if code came or went since the ranges had changed `n_changes` times.
pub fn fault_natively(context: &mut ThreadContext, n_changes: u64) {
    let mask = set_signal_mask(u64::MAX);
    let engine = ENGINE.lock();
    if context.is_signal_waiting() && !probe_returns::is_inside(context) || engine.ranges.n_changes != n_changes {
        drop(engine);
        set_signal_mask(mask);
        return;
    }
    // Kept until the fault is there (signal/faults.rs): no other thread puts code there before.
    core::mem::forget(engine);
    probe_returns::note_native(context);
    deliver::step_native(context, mask, STEPPING_LOCKED)
}

/// Makes a SIGSEGV that is no page fault's wait to be delivered, which the program's instruction at the context's rip causes.
pub fn raise_fault(context: &mut ThreadContext, details: [u64; 3]) {
    let mask = take_mask(context);
    context.pending_mask = mask;
    context.fault_info = SigInfo { signo: SIGSEGV as i32, code: SI_KERNEL, ..SigInfo::ZERO };
    context.note_fault(details);
    context.fault_pending = 1;
}

/// Makes the SIGSEGV wait to be delivered that the program's next instruction causes, of which what is at `address` can't be
/// fetched because nothing is mapped there.
pub fn raise_page_fault(context: &mut ThreadContext, address: u64) {
    const PAGE_FAULT: u64 = 14;
    /// By user code, of instructions (Intel SDM, page-fault exceptions).
    const ERROR_CODE: u64 = 0x14;
    context.exit_id = NONE;
    raise_fault(context, [ERROR_CODE, PAGE_FAULT, address]);
    context.fault_info.code = SEGV_MAPERR;
    context.fault_info.address = address;
}

/// Makes the trap wait to be delivered that the trap flag causes behind an instruction.
pub fn raise_step(context: &mut ThreadContext) {
    merging::note_step_done(context);
    context.exit_id = NONE;
    raise_fault(context, [0, DEBUG_EXCEPTION, 0]);
    context.fault_info = SigInfo { signo: SIGTRAP as i32, code: TRAP_TRACE, address: context.rip, ..SigInfo::ZERO };
}

/// Makes a SIGSEGV wait to be delivered that the kernel sends by itself.
pub fn raise_forced(context: &mut ThreadContext) {
    context.exit_id = NONE;
    raise_fault(context, context.fault_details);
    context.fault_pending = FORCED;
}

/// Makes the SIGSYS in `fault_info` wait to be delivered, which answers the system call behind which the program is.
pub fn raise_trap(context: &mut ThreadContext) {
    context.is_trapped = 0;
    let mask = take_mask(context);
    context.pending_mask = mask;
    context.exit_id = NONE;
    context.fault_info.signo = SIGSYS as i32;
    context.fault_info.address = context.rip;
    context.fault_details = [0; 3];
    context.fault_pending = TRAPPED;
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
    deliver_one(context, info, mask, context.fault_details, false)
}

/// Ends the process by SIGSEGV or SIGSYS, whatever the program asked for.
pub fn end_by(context: &mut ThreadContext, info: &SigInfo) -> ! {
    note_end(context, release_reason::FATAL_FAULT, end_kind::UNKNOWN);
    table_of(context).lock().restore_default(info.signo as u32);
    loop {
        deliver::raise_again(info);
        // Neither is blocked by this, and the default action is in place.
        set_signal_mask(ALL_BUT_FAULTS);
    }
}

/// The waiting signal is the caller's to deal with; what was unlinked for it is linked again.
pub fn take_pending(context: &mut ThreadContext) {
    context.pending_word().fetch_and(!PENDING_SIGNAL, Ordering::Relaxed);
    UNDELIVERED.fetch_sub(1, Ordering::SeqCst);
    if context.unlinked_fragment != NONE {
        let id = core::mem::replace(&mut context.unlinked_fragment, NONE);
        ENGINE.lock().cache.relink_after_interrupt(id);
    }
}

/// Delivers one signal; returns the program's mask after it.
fn deliver_one(context: &mut ThreadContext, info: &SigInfo, mask: u64, details: [u64; 3], is_fault: bool) -> u64 {
    let interrupted_pc = match core::mem::take(&mut context.has_fault_origin) {
        false => excursion::origin(context).unwrap_or(name_of(context.rip)),
        true => context.fault_origin,
    };
    let is_past = is_fault && core::mem::take(&mut context.is_fault_past) != 0;
    let event = if is_fault { event_kind::FAULT } else { event_kind::SIGNAL };
    {
        // SAFETY: `shared` is set before any thread runs and never changes.
        let shared = unsafe { ENGINE.peek() }.shared;
        shared.add(crate::status_field!(entries_signal), 1);
        let writer = writer_of(context, shared);
        write_event(&writer, event, interrupted_pc, [info.signo as u64, info.code as u64, info.address]);
        if context.has_tags {
            let _engine = ENGINE.lock();
            region::note_signal(context, &writer, is_fault, info.signo as u32, interrupted_pc);
        }
    }
    if !is_fault {
        end_interrupted_call(context, info.signo as u32);
    }
    // What an instruction causes and the program blocks ends it (kernel/signal.c, force_sig_info_to_task).
    let is_fatal = is_fault && mask & 1 << (info.signo - 1) != 0;
    let delivery = if is_fatal { Delivery::Default } else { deliver::deliver(context, info, mask, details) };
    if !matches!(delivery, Delivery::Handler(_)) {
        frame::load_state(context);
    }
    match delivery {
        Delivery::Handler(new_mask) => {
            let kind = if is_fault { edge_kind::FAULT } else { edge_kind::SIGNAL };
            excursion::abandon(context);
            let mut engine = ENGINE.lock();
            // The instruction's address alone would not tell which version of code that changes it was.
            let source_fragment = if is_fault { engine.cache.holder(context.exit_id, interrupted_pc) } else { NONE };
            let edge = DynamicEdge { kind, source_fragment, source_pc: interrupted_pc, target_pc: context.rip };
            let writer = writer_of(context, engine.shared);
            engine.count_edge(&writer, context, edge);
            if context.has_path {
                path::write_event(context, &writer, path_event_kind::RESUME, interrupted_pc, context.rip);
            }
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
    const SYSCALL_BYTES: u64 = 2;
    if context.call_code == 0 || context.rip != context.call_pc {
        return;
    }
    let action = table_of(context).lock().action(signal);
    if action.handler == SIG_DFL || action.handler == SIG_IGN {
        return;
    }
    let code = core::mem::take(&mut context.call_code);
    if code != ERESTARTNOINTR && (code != ERESTARTSYS || action.flags & SA_RESTART == 0) {
        context.registers[0] = -i64::from(EINTR) as u64;
        context.rip += SYSCALL_BYTES;
    }
}

/// Lets the program's default action come: the fault is repeated natively.
fn end_by_default(context: &mut ThreadContext, mask: u64) -> ! {
    suspend_trust(context);
    note_end(context, release_reason::FATAL_FAULT, end_kind::UNKNOWN);
    deliver::release_native(context, mask)
}

/// The thread goes on natively from the context's rip, for ever.
pub fn release(context: &mut ThreadContext, reason: u16) -> ! {
    let mask = end_following(context, reason);
    deliver::release_native(context, mask)
}

/// As `release`; where the thread is the only one, nothing of the runtime is left in the process' signal actions.
pub fn release_all(context: &mut ThreadContext, reason: u16) -> ! {
    let shared = ENGINE.lock().shared;
    let is_alone = THREADS.lock().count_running(shared) == 1;
    let mask = end_following(context, reason);
    if is_alone {
        context.child_flags = 0;
        deliver::release_process(context, mask);
    }
    deliver::release_native(context, mask)
}

/// Native code is to run here, for ever.
fn suspend_trust(context: &ThreadContext) {
    let mut engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    engine.suspend_trust(&writer);
}

/// What comes before a release; the program's mask. All signals are blocked after it.
fn end_following(context: &mut ThreadContext, reason: u16) -> u64 {
    super::sequences::settle(context);
    suspend_trust(context);
    note_end(context, reason, end_kind::RELEASED);
    let mask = take_mask(context);
    set_signal_mask(u64::MAX);
    if context.is_signal_waiting() {
        deliver::raise_again(&context.pending_info);
        take_pending(context);
    }
    deliver::raise_held(context);
    mask
}

/// Modes full and region: the thread's path, or its tags, end in front of the context's rip, as far as they are recorded.
pub fn end_path(engine: &Engine, writer: &RingWriter, context: &mut ThreadContext) {
    if context.has_path {
        path::go_on(context, writer);
        path::write_event(context, writer, path_event_kind::END, name_of(context.rip), 0);
        path::flush(context, writer);
    }
    if engine.records_regions() {
        region::end(engine, context, writer);
    }
}

/// Records that the thread is followed no further.
pub fn note_end(context: &mut ThreadContext, reason: u16, end: u32) {
    let went_on_at = context.rip;
    context.rip = excursion::abandon(context).unwrap_or(went_on_at);
    let engine = ENGINE.lock();
    let writer = writer_of(context, engine.shared);
    write_event(&writer, event_kind::RELEASED, name_of(context.rip), [u64::from(reason), 0, 0]);
    end_path(&engine, &writer, context);
    describe_end(context, engine.shared, end);
    context.rip = went_on_at;
}
