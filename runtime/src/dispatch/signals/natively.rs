//! The processor executes at an address where nothing is known to be executable: the fault comes from there.

use crate::context::stepping::STEPPING_LOCKED;
use crate::context::ThreadContext;
use crate::cpu::signal::deliver;
use crate::dispatch::apart::probe_returns;
use crate::instrument::ENGINE;
use crate::sys::calls::set_signal_mask;

/// Lets the processor execute at the context's pc, where it cannot, as far as is known: the fault comes from there. Comes back only if a
/// signal goes before, or if code came or went since the ranges had changed `n_changes` times.
pub fn fault_natively(context: &mut ThreadContext, n_changes: u64) {
    let mask = set_signal_mask(u64::MAX);
    let engine = ENGINE.lock();
    if context.is_signal_waiting() && !probe_returns::is_inside(context) || engine.ranges.n_changes != n_changes {
        drop(engine);
        set_signal_mask(mask);
        return;
    }
    // Kept until the fault is there (cpu::signal::faults): no other thread puts code there before.
    core::mem::forget(engine);
    probe_returns::note_native(context);
    deliver::step_native(context, mask, STEPPING_LOCKED)
}
