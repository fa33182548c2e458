//! The end of a return's probe: the thread goes on where the probed function's caller is.

use super::probe_returns;
use crate::context::numbers::FragmentId;
use crate::context::ThreadContext;
use crate::dispatch::flow::indirect;
use crate::dispatch::signals::masks;

/// After that: counts the return if the thread came out.
pub fn settle(context: &mut ThreadContext) {
    let was_inside = core::mem::take(&mut context.stepping.is_in_probe) != 0;
    if !was_inside || context.signals.fault_pending != 0 || probe_returns::is_known(context.registers.pc) {
        return;
    }
    let source = FragmentId::from_raw(core::mem::take(&mut context.stepping.probed_return) - 1);
    let target = context.registers.pc;
    masks::with_faults(context, |context| indirect::follow_indirect(context, source, target));
}
