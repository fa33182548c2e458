//! By which branch a thread went to code that is not followed.

extern crate alloc;
use crate::context::addresses::AppPc;
use crate::context::numbers::ExitId;
use crate::context::ThreadContext;
use crate::dispatch::flow::parts::uncount_block;
use crate::instrument::ENGINE;

/// The thread left the code that is followed by exit `exit_id`: a branch, or the system call rt_sigreturn.
pub fn begin(context: &mut ThreadContext, exit_id: ExitId) {
    context.stepping.excursion_exit = exit_id.raw() + 1;
    context.stepping.excursion_steps = 0;
    ENGINE.lock().shared.add(crate::status_field!(excursions), 1);
}

/// The thread goes on elsewhere than where it would come back: for the records the branch was not executed. Where that stands.
pub fn abandon(context: &mut ThreadContext) -> Option<AppPc> {
    let origin = origin(context)?;
    let exit_id = end(context)?;
    let mut engine = ENGINE.lock();
    let source = engine.cache.exit(exit_id).fragment;
    uncount_block(&mut engine, context, source, origin);
    Some(origin)
}

/// The branch by which it left the code that is followed, if it did.
pub fn origin(context: &ThreadContext) -> Option<AppPc> {
    let exit_id = ExitId::from_raw(context.stepping.excursion_exit.checked_sub(1)?);
    let engine = ENGINE.lock();
    let fragment = *engine.cache.fragment(engine.cache.exit(exit_id).fragment);
    Some(fragment.branch_pc())
}

pub fn end(context: &mut ThreadContext) -> Option<ExitId> {
    let exit_id = ExitId::from_raw(core::mem::take(&mut context.stepping.excursion_exit).checked_sub(1)?);
    context.stepping.excursion_steps = 0;
    Some(exit_id)
}
