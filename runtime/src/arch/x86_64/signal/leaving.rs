//! From the handler straight to the dispatcher.
//!
//! A signal that a system call brings finds the thread in the gate, where nothing but the dispatcher can come next. What the
//! kernel's frame holds is the program's state, as the program's own frame will show it; what the processor holds is what the
//! program's handler begins with. So neither goes through the processor once more: no rt_sigreturn, no XSAVE, no XRSTOR.
//!
//! Called by the handler, and keeps to its rules.

use crate::context::ThreadContext;
use crate::cpu::dispatcher::{REASON_SYSCALL_AGAIN, REASON_SYSCALL_DONE};
use crate::cpu::gate;
use crate::cpu::selectors::{own_selector, USER_CS, USER_SS};
use crate::cpu::signal::frame;
use crate::cpu::sys::kernel::UContext;
use crate::cpu::sys::kernel::RESUME_FLAG;
use crate::cpu::sys::kernel::TRAP_FLAG;
use crate::signal::nested;
use crate::sys::calls::set_signal_mask;
use crate::sys::kernel::MEMORY_FAULTS;
use core::arch::asm;

/// Leaves the handler for the dispatcher, if the kernel would return to where the gate goes there. Else comes back, having changed
/// nothing.
pub fn leave_for_dispatcher(context: &mut ThreadContext, signal: u32, ucontext: &UContext) {
    let machine = &ucontext.mcontext;
    let Some(reason) = reason_at(machine.rip) else {
        return;
    };
    let is_usual = own_selector(machine.cs, USER_CS) == 0 && own_selector(machine.ss, USER_SS) == 0;
    if !is_usual || machine.rflags & TRAP_FLAG != 0 || !frame::keep_state(context, machine) {
        return;
    }
    context.registers.general = machine.registers();
    context.registers.flags = machine.rflags & !RESUME_FLAG;
    if reason == REASON_SYSCALL_AGAIN {
        context.registers.general[1] = context.gate.spill_rcx;
        context.registers.general[11] = context.gate.spill_r11;
    } else {
        context.call.code = 0;
    }
    context.gate.reason = reason;
    // What the dispatcher needs is open by the handler's own mask, as a rule.
    let is_open = ucontext.sigmask & MEMORY_FAULTS == 0 && MEMORY_FAULTS & 1 << (signal - 1) == 0;
    if !is_open || nested::is_deaf(context) {
        set_signal_mask(ucontext.sigmask & !MEMORY_FAULTS);
    }
    go_to_dispatcher(context)
}

/// Goes from the handler to the dispatcher, for `gate.reason`. The context is complete, and nothing on the runtime's stack is needed any
/// more: the thread was in a gate, or not in the runtime.
pub fn go_to_dispatcher(context: &ThreadContext) -> ! {
    let stack = context.gate.stack_top;
    // SAFETY: as said; MXCSR and flags are as the kernel and the handler's entry set them, and nothing on this stack is needed any more.
    unsafe {
        asm!("mov rsp, {stack}", "jmp {dispatch}", stack = in(reg) stack, dispatch = sym gate::clew_call_dispatch,
            options(noreturn))
    }
}

/// What the gate would ask of the dispatcher at `pc`.
fn reason_at(pc: u64) -> Option<u32> {
    let is_at = |label: unsafe extern "C" fn()| pc == label as *const () as u64;
    if is_at(gate::clew_syscall_return) || is_at(gate::clew_syscall_done_pending) {
        Some(REASON_SYSCALL_DONE)
    } else if is_at(gate::clew_syscall_again_pending) {
        Some(REASON_SYSCALL_AGAIN)
    } else {
        None
    }
}
