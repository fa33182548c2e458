//! The program's mask in the runtime's hands: while anything waits to be delivered, and around what may fault.

use crate::context::signals::GIVES;
use crate::context::signals::HOLDS;
use crate::context::ThreadContext;
use crate::cpu::signal::deliver;
use crate::signal::table::ALL_BUT_MEMORY_FAULTS;
use crate::sys::calls::set_signal_mask;

/// Takes the program's mask into the runtime's hands: what is sent from now on waits, until `give_mask`.
pub fn take_mask(context: &mut ThreadContext) -> u64 {
    let is_kept = |context: &ThreadContext| context.is_signal_waiting() || context.signals.fault_pending != 0;
    if is_kept(context) {
        // The handler left everything blocked that needs to be.
        set_holds_mask(context, HOLDS);
        return context.program_mask(context.signals.pending_mask);
    }
    let mask = set_signal_mask(u64::MAX);
    // Nothing can come now, so what was there a moment ago is decided.
    let is_kept = is_kept(context);
    hold_mask(context);
    context.program_mask(if is_kept { context.signals.pending_mask } else { mask })
}

/// The thread's mask is the program's again, and what was held back comes if that lets it.
pub fn give_mask(context: &mut ThreadContext, mask: u64) {
    let mask = context.note_mask(mask);
    let_go_of_mask(context, mask);
}

/// From here on what is sent waits. Everything is blocked before, but what copies to and from the program's memory cause is
/// not after it: a fault that is blocked kills.
pub fn hold_mask(context: &mut ThreadContext) {
    set_holds_mask(context, HOLDS);
    set_signal_mask(ALL_BUT_MEMORY_FAULTS);
}

/// Undoes `hold_mask`; the thread's mask is `mask` then.
pub fn let_go_of_mask(context: &mut ThreadContext, mask: u64) {
    set_holds_mask(context, GIVES);
    set_signal_mask(mask);
    set_holds_mask(context, 0);
    if deliver::is_any_held(context) {
        let mask = set_signal_mask(u64::MAX);
        deliver::raise_held(context);
        set_signal_mask(mask);
    }
}

pub fn set_holds_mask(context: &mut ThreadContext, value: u32) {
    // SAFETY: a field of a live context, which the signal handler reads.
    unsafe { (&raw mut context.signals.holds_mask).write_volatile(value) };
}

/// Runs what may read the program's memory by a guarded copy, whose faults must not be blocked.
pub fn with_faults<T>(context: &mut ThreadContext, read: impl FnOnce(&mut ThreadContext) -> T) -> T {
    if context.signals.blocks_faults == 0 || context.signals.holds_mask != 0 {
        return read(context);
    }
    let mask = set_signal_mask(u64::MAX);
    hold_mask(context);
    let result = read(context);
    let_go_of_mask(context, mask);
    result
}
