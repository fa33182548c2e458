//! Whether a thread is in code that is not 64-bit code, and by which branch it went there.

extern crate alloc;
use crate::context::ThreadContext;
use crate::cpu::selectors;
use crate::dispatch::flow::parts::uncount_block;
use crate::instrument::ENGINE;

/// Whether the thread is to go on with selectors that 64-bit code does not have.
pub fn is_away(context: &ThreadContext) -> bool {
    context.registers.code_selector != 0
        || context.registers.stack_selector != 0 && !selectors::is_stack(context.registers.stack_selector)
}

/// The thread left 64-bit code by exit `exit_id`: a branch, or the system call rt_sigreturn.
pub fn begin(context: &mut ThreadContext, exit_id: u32) {
    context.stepping.excursion_exit = exit_id + 1;
    context.stepping.excursion_steps = 0;
    ENGINE.lock().shared.add(crate::status_field!(excursions), 1);
}

/// The thread goes on elsewhere than where it would come back: for the records the branch was not executed. Where that stands.
pub fn abandon(context: &mut ThreadContext) -> Option<u64> {
    let origin = origin(context)?;
    let exit_id = end(context)?;
    let mut engine = ENGINE.lock();
    let source = engine.cache.exit(exit_id).fragment;
    uncount_block(&mut engine, context, source, origin);
    Some(origin)
}

/// The branch by which the thread left 64-bit code, if it did.
pub fn origin(context: &ThreadContext) -> Option<u64> {
    let exit_id = context.stepping.excursion_exit.checked_sub(1)?;
    let engine = ENGINE.lock();
    let fragment = *engine.cache.fragment(engine.cache.exit(exit_id).fragment);
    Some(fragment.branch_pc())
}

pub fn end(context: &mut ThreadContext) -> Option<u32> {
    let exit_id = core::mem::take(&mut context.stepping.excursion_exit).checked_sub(1)?;
    context.stepping.excursion_steps = 0;
    Some(exit_id)
}
