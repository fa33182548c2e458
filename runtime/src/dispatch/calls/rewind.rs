//! System calls that were not made: the program is in front of them again.

use crate::context::addresses::AppPc;
use crate::context::ThreadContext;
use crate::cpu::signal::interrupt::behind_call;
use crate::dispatch::flow::parts;
use crate::instrument::ENGINE;

/// The address after the system call that the thread made.
pub fn leave_syscall(context: &mut ThreadContext) -> AppPc {
    // SAFETY: only arenas are read, and `shared`, which is set before any thread runs and never changes.
    let engine = unsafe { ENGINE.peek() };
    engine.shared.add(crate::status_field!(entries_syscall), 1);
    behind_call(&engine.cache, context)
}

/// A system call that the gate was to make and did not: the application is in front of it again.
pub fn rewind_call(context: &mut ThreadContext) {
    rewind_syscall(context);
    context.call.pc = context.registers.pc;
}

/// A system call that was not made yet: the application is in front of it again.
pub fn rewind_syscall(context: &mut ThreadContext) {
    if context.native.call_pc != AppPc::NOWHERE {
        context.registers.pc = context.native.call_pc;
        context.note_step();
        return;
    }
    let mut engine = ENGINE.lock();
    let exit = *engine.cache.exit(context.gate.exit_id);
    let fragment = *engine.cache.fragment(exit.fragment);
    context.registers.pc = fragment.branch_pc();
    context.note_step();
    let stopped_at = context.registers.pc;
    parts::uncount_block(&mut engine, context, exit.fragment, stopped_at);
}
