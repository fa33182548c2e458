//! Faults and traps that the program's instructions cause, made to wait until they are delivered.

use super::masks::take_mask;
use crate::context::numbers::FragmentId;
use crate::context::ThreadContext;
use crate::cpu::context::execution_fault;
use crate::cpu::signal::faults::{FORCED, TRAPPED};
use crate::cpu::sys::kernel::DEBUG_EXCEPTION;
use crate::signal::merging;
use crate::sys::kernel::{SigInfo, SEGV_MAPERR, SIGSEGV, SIGSYS, SIGTRAP, SI_KERNEL, TRAP_TRACE};

/// Makes a SIGSEGV that is no page fault's wait to be delivered, which the program's instruction at the context's pc causes.
pub fn raise_fault(context: &mut ThreadContext, details: [u64; 3]) {
    let mask = take_mask(context);
    context.signals.pending_mask = mask;
    context.signals.fault_info = SigInfo { signo: SIGSEGV as i32, code: SI_KERNEL, ..SigInfo::ZERO };
    context.note_fault(details);
    context.signals.fault_pending = 1;
}

/// Makes the SIGSEGV wait to be delivered that the program's next instruction causes, of which what is at `address` can't be
/// fetched because nothing is mapped there.
pub fn raise_page_fault(context: &mut ThreadContext, address: u64) {
    context.gate.note_fault_fragment(FragmentId::NONE);
    raise_fault(context, execution_fault(address));
    context.signals.fault_info.code = SEGV_MAPERR;
    context.signals.fault_info.address = address;
}

/// Makes the trap wait to be delivered that the trap flag causes behind an instruction.
pub fn raise_step(context: &mut ThreadContext) {
    merging::note_step_done(context);
    context.gate.note_fault_fragment(FragmentId::NONE);
    raise_fault(context, [0, DEBUG_EXCEPTION, 0]);
    context.signals.fault_info =
        SigInfo { signo: SIGTRAP as i32, code: TRAP_TRACE, address: context.registers.pc.raw(), ..SigInfo::ZERO };
}

/// Makes a SIGSEGV wait to be delivered that the kernel sends by itself.
pub fn raise_forced(context: &mut ThreadContext) {
    context.gate.note_fault_fragment(FragmentId::NONE);
    raise_fault(context, context.signals.fault_details);
    context.signals.fault_pending = FORCED;
}

/// Makes the SIGSYS in `fault_info` wait to be delivered, which answers the system call behind which the program is.
pub fn raise_trap(context: &mut ThreadContext) {
    context.call.is_trapped = 0;
    let mask = take_mask(context);
    context.signals.pending_mask = mask;
    context.gate.note_fault_fragment(FragmentId::NONE);
    context.signals.fault_info.signo = SIGSYS as i32;
    context.signals.fault_info.address = context.registers.pc.raw();
    context.signals.fault_details = [0; 3];
    context.signals.fault_pending = TRAPPED;
}
