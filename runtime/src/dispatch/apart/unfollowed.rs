//! Threads that are not followed run the program's own code, at its own speed.
//!
//! Such a thread comes to the dispatcher for signals, system calls and whatever the controller wants of it
//! (`cpu::signal::unfollowed`), and goes on natively from there. So all that the runtime does for the program it does for this
//! thread, too: mappings, signal handlers, children. Nothing of what it executes is recorded.
//!
//! Runs in the target on the runtime's stack, no lock held.

use crate::buffer::Shared;
use crate::context::addresses::AppPc;
use crate::context::numbers::ExitId;
use crate::context::process::Sharing;
use crate::context::ThreadContext;
use crate::cpu::call_dispatch;
use crate::cpu::gate;
use crate::cpu::probe_points;
use crate::cpu::signal::deliver;
use crate::cpu::signal::frame;
use crate::cpu::signal::image::image_range;
use crate::cpu::signal::unfollowed;
use crate::cpu::sys::calls::CALL_BYTES;
use crate::cpu::sys::number;
use crate::dispatch::apart::{captures, ended_calls, hold, probe_returns};
use crate::dispatch::calls::syscalls::{self, Outcome};
use crate::dispatch::flow::{linking, rseq};
use crate::dispatch::signals::masks;
use crate::instrument::ENGINE;
use crate::protocol::event_kind;
use crate::signal::table::table_of;
use crate::sys::calls::set_signal_mask;
use crate::thread::path;
use crate::thread::registry::{write_event, writer_of};
use core::sync::atomic::{AtomicBool, Ordering};

/// The kernel does not dispatch calls.
static CANNOT: AtomicBool = AtomicBool::new(false);

/// Whether the thread runs natively, or would if nothing else were wanted of it at once.
pub fn is_wanted(context: &ThreadContext, shared: Shared) -> bool {
    context.process.sharing == Sharing::Thread && shared.is_unfollowed(context.slot)
}

/// Has the thread run natively from the context's pc on, if it is to. Comes back if it is not, or if something goes before.
/// Whether it was about to.
pub fn go_on(context: &mut ThreadContext, shared: Shared, link: ExitId) -> bool {
    if !is_wanted(context, shared) || !can_run(context, shared) {
        come_back(context, shared);
        return false;
    }
    if context.native.is_away == 0 {
        linking::note_first_exit(context, link);
        rseq::leave(context);
        leave(context, shared);
    }
    if context.native.is_mask_known != 0 && context.native.is_dispatched != 0 && !deliver::is_any_held(context) {
        unfollowed::run_at_once(context);
    }
    table_of(context).lock().take_calls();
    let mask = set_signal_mask(u64::MAX);
    if context.is_signal_waiting() {
        set_signal_mask(mask);
        return true;
    }
    if deliver::is_any_held(context) {
        // What of it the program blocks would come all the same.
        deliver::raise_held(context);
        set_signal_mask(mask);
        context.native.is_barred = 1;
        return true;
    }
    if !call_dispatch::begin(context, image_range()) {
        set_signal_mask(mask);
        CANNOT.store(true, Ordering::Relaxed);
        return true;
    }
    context.native.call_pc = AppPc::NOWHERE;
    unfollowed::run(context, mask)
}

/// Whether the thread can run natively: nothing is under way for which it must come by the dispatcher behind its next instructions.
fn can_run(context: &ThreadContext, shared: Shared) -> bool {
    let stepping = &context.stepping;
    let is_in_pieces = stepping.native_exit != 0 || stepping.excursion_exit != 0 || stepping.probed_return != 0;
    let is_stepped = context.registers.are_stepped() || context.hold.step != 0 || context.hold.called_frame != 0;
    let is_late = captures::is_past(context) || probe_returns::is_inside(context);
    let is_dispatching = context.call.user_dispatch.is_on != 0;
    context.native.is_barred == 0
        && context.native.steps_itself == 0
        && !(is_in_pieces || is_stepped || is_late || is_dispatching)
        && !context.path.has_tags
        && !shared.has_breakpoints()
        && !probe_points::is_any_used()
        && !CANNOT.load(Ordering::Relaxed)
}

/// Nothing is recorded of the thread from the context's pc on.
fn leave(context: &mut ThreadContext, shared: Shared) {
    context.native.is_away = 1;
    shared.add(crate::status_field!(native_runs), 1);
    let writer = writer_of(context, shared);
    ended_calls::end_thread(context, &writer);
    write_event(&writer, event_kind::RECORDING_CHANGED, context.registers.pc, [1, 0, 0]);
    let _engine = ENGINE.lock();
    if context.path.is_on {
        path::suspend(context, &writer);
    }
}

/// The thread goes on in translated code, and is recorded again, if it was not.
fn come_back(context: &mut ThreadContext, shared: Shared) {
    call_dispatch::end(context);
    if core::mem::take(&mut context.native.is_away) == 0 {
        return;
    }
    frame::load_state(context);
    let writer = writer_of(context, shared);
    write_event(&writer, event_kind::RECORDING_CHANGED, context.registers.pc, [0, 1, 0]);
    hold::follow_mode(context, shared);
}

/// Whether the thread is in front of a system call that it ran into: what leaving the handler straight left undone is done.
pub fn take_call(context: &mut ThreadContext) -> bool {
    let is_calling = core::mem::take(&mut context.native.is_calling) != 0;
    if is_calling && context.signals.has_state_apart != 0 {
        frame::load_state(context);
        let mask = context.native.mask;
        masks::let_go_of_mask(context, mask);
    }
    is_calling
}

/// Makes the system call that the thread ran into. Where in the gate it goes on, which makes the call; `None`: it is done, or
/// is not made now.
pub fn make_call(context: &mut ThreadContext) -> Option<u64> {
    let call_pc = context.registers.pc;
    if matches!(context.registers.call_number(), number::URETPROBE | number::UPROBE) {
        step(context);
        return None;
    }
    context.native.call_pc = call_pc;
    // SAFETY: `shared` is set before any thread runs and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    shared.add(crate::status_field!(native_calls), 1);
    let before = context.registers.overwritten();
    context.gate.keep_overwritten(before);
    context.registers.pass_call(call_pc + CALL_BYTES);
    match syscalls::handle(context) {
        Outcome::Done => context.note_step(),
        Outcome::ByGate => {
            context.registers.put_back(before);
            context.call.goes_on_at = gate::clew_syscall_done_pending as *const () as u64;
            // Until the gate is there, a signal makes the thread come back as if it had not been here.
            context.call.is_allowed = 1;
            return Some(gate::clew_gate_syscall_allowed as *const () as u64);
        }
        Outcome::SignalFirst => {
            context.registers.put_back(before);
            context.registers.pc = call_pc;
            context.note_step();
        }
    }
    None
}

/// Has the kernel's code for probes make its call itself: it makes no sense elsewhere. The trap behind it brings the thread back; comes
/// back if a signal goes before.
fn step(context: &mut ThreadContext) {
    call_dispatch::end(context);
    let mask = set_signal_mask(u64::MAX);
    if context.is_signal_waiting() {
        set_signal_mask(mask);
    } else {
        deliver::step_native(context, mask, 0)
    }
}
