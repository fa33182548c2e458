//! System calls that come to the dispatcher: before they are made, and when the gate has made them.

use super::rewind::{leave_syscall, rewind_syscall};
use super::syscalls;
use crate::context::addresses::{AppPc, CachePc};
use crate::context::numbers::ExitId;
use crate::context::ThreadContext;
use crate::cpu::gate;
use crate::dispatch::apart::{captured_system_calls, hold};
use crate::dispatch::flow::straight;
use crate::dispatch::signals::signal_calls;
use crate::instrument::captures::places::are_calls_captured;

/// How a thread goes on from a system call.
pub enum Way {
    /// As from any exit.
    By(ExitId),
    /// Where the gate would have led it.
    Straight(CachePc),
    /// In the gate, which makes the call.
    Gate(u64),
}

/// A system call, which the gate has left to the dispatcher.
pub fn take(context: &mut ThreadContext) -> Way {
    let exit_id = context.gate.exit_id;
    let next = leave_syscall(context);
    let before = context.registers.overwritten();
    let straight_on = context.gate.jump;
    context.call.goes_on_at = straight_on;
    let number = context.registers.call_number();
    if captured_system_calls::begin(context, number, next) {
        // It is made when the thread has waited.
        rewind_syscall(context);
        return Way::By(ExitId::NONE);
    }
    context.registers.pass_call(next);
    match syscalls::handle(context) {
        syscalls::Outcome::Done => {
            captured_system_calls::end(context, number);
            context.note_step();
            straight::behind_call(context, straight_on, next).map_or(Way::By(exit_id), Way::Straight)
        }
        syscalls::Outcome::ByGate => {
            context.registers.put_back(before);
            if context.path.is_on || are_calls_captured() {
                // Others count on it that the thread tells what changed meanwhile before it executes anything; and what it
                // returns may be captured.
                context.call.goes_on_at = gate::clew_syscall_done_pending as *const () as u64;
                context.call.straight_on = straight_on;
            }
            // Until the gate is there, a signal makes the thread come back as if it had not been here.
            context.call.is_allowed = 1;
            Way::Gate(gate::clew_gate_syscall_allowed as *const () as u64)
        }
        syscalls::Outcome::SignalFirst => {
            context.registers.put_back(before);
            rewind_syscall(context);
            Way::By(ExitId::NONE)
        }
    }
}

/// A system call, which the gate has made.
pub fn end(context: &mut ThreadContext) -> Way {
    let number = context.call.number;
    signal_calls::note_temporary_mask(context);
    context.note_step();
    let link = if context.native.call_pc == AppPc::NOWHERE { context.gate.exit_id } else { ExitId::NONE };
    let next = leave_syscall(context);
    context.registers.return_from_call(next);
    hold::catch_up(context);
    captured_system_calls::end(context, number & 0xffff_ffff);
    let straight_on = core::mem::take(&mut context.call.straight_on);
    straight::behind_call(context, straight_on, next).map_or(Way::By(link), Way::Straight)
}
