//! arch_prctl(2): what the kernel keeps of the processor for a thread.

use crate::context::ThreadContext;
use crate::cpu::selectors;
use crate::cpu::sys::kernel::ARCH_GET_GS;
use crate::cpu::sys::kernel::ARCH_SET_GS;
use crate::cpu::sys::number;
use crate::dispatch::calls::results::{result_of, write_program};
use crate::sys::calls::{program_call, EPERM};

/// The gs base that the program sees is its own; the processor's is the runtime's.
pub fn arch_control(context: &mut ThreadContext, arguments: [u64; 6]) -> i64 {
    match arguments[0] {
        ARCH_SET_GS => {
            if arguments[1] >= 0x7fff_ffff_f000 {
                return -i64::from(EPERM);
            }
            context.registers.gs_base = arguments[1];
            selectors::forget_gs_selector(context);
            0
        }
        ARCH_GET_GS => result_of(write_program(arguments[1], context.registers.gs_base)),
        // SAFETY: the program's own call.
        _ => unsafe { program_call(number::ARCH_PRCTL, arguments) },
    }
}
