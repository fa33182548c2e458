//! Coming back from the program's handler: rt_sigreturn.

use super::deliver::{change_stack, is_any_held, raise_held, usable_stack};
use super::frame::{self, FramePlace};
use super::merging;
use super::table::ALL_BUT_FAULTS;
use crate::arch::x86_64::context::ThreadContext;
use crate::arch::x86_64::selectors::{own_selector, USER_CS, USER_PRIVILEGE, USER_SS};
use crate::arch::x86_64::{gate, guarded};
use crate::sys::calls::set_signal_mask;
use crate::sys::filter;
use crate::sys::kernel::{SigContext, SigFrame, SigInfo, UContext, UC_STRICT_RESTORE_SS};
use core::arch::global_asm;

/// Selectors of code and stack that rt_sigreturn takes from a frame, as contexts hold them (arch/x86/kernel/signal_64.c,
/// restore_sigcontext).
pub fn selectors_of(frame: &SigFrame) -> (u16, u16) {
    let machine = &frame.ucontext.mcontext;
    let code = own_selector(machine.cs | USER_PRIVILEGE, USER_CS);
    let stack = own_selector(machine.ss | USER_PRIVILEGE, USER_SS);
    let is_strict = frame.ucontext.flags & UC_STRICT_RESTORE_SS != 0;
    (code, if code == 0 && !is_strict { usable_stack(stack) } else { stack })
}

/// The frame that the program's rt_sigreturn returns from, if as much of it can be read as the kernel reads: its ucontext, which
/// is where the stack pointer is. The rest is zero. Guarded copies may fault.
pub fn read_frame(context: &ThreadContext) -> Option<SigFrame> {
    const START: usize = core::mem::offset_of!(SigFrame, ucontext);
    let mut bytes = [0; size_of::<SigFrame>()];
    let read = &mut bytes[START..][..size_of::<UContext>()];
    if guarded::read_program(read, context.registers[4]) != read.len() {
        return None;
    }
    // SAFETY: as many bytes, and any bytes are a frame.
    Some(unsafe { bytes.as_ptr().cast::<SigFrame>().read_unaligned() })
}

/// The program's rt_sigreturn from `frame`. Loads the vector state from there by a real rt_sigreturn, which lands in the
/// gate. Comes back only if a seccomp filter refuses it, with what the call returned.
pub fn return_from_handler(context: &mut ThreadContext, frame: SigFrame) -> i64 {
    let selectors = (context.code_selector, context.stack_selector);
    let before = (context.registers, context.rip, context.rflags, context.is_step_fresh, context.app_signal_stack);
    (context.code_selector, context.stack_selector) = selectors_of(&frame);
    let machine = frame.ucontext.mcontext;
    context.registers = machine.registers();
    context.rip = machine.rip;
    // Only these flags can be set by the program (arch/x86/kernel/signal_64.c, FIX_EFLAGS).
    const SETTABLE: u64 = 0x5_0dd5;
    context.rflags = (machine.rflags & SETTABLE) | 0x202;
    context.note_step();
    merging::note_return(context);
    // What is refused is left as it is (kernel/signal.c, restore_altstack).
    let _ = change_stack(context, &frame.ucontext.stack);
    if !filter::is_active() && !context.is_signal_waiting() && !is_any_held(context) {
        return_at_once(context, &frame.ucontext);
    }
    let mut own = frame.ucontext;
    // A signal that waits is delivered next, and comes back to the mask that this return restores.
    let mask = set_signal_mask(u64::MAX);
    let pending_mask = context.pending_mask;
    let is_waiting = context.is_signal_waiting();
    let program_mask = context.program_mask(if is_waiting { pending_mask } else { mask });
    own.sigmask = context.note_mask(own.sigmask);
    if is_waiting {
        context.pending_mask = frame.ucontext.sigmask;
        own.sigmask = ALL_BUT_FAULTS;
    }
    raise_held(context);
    filter::open_for_trap(program_mask);
    let place = prepare_return(context, own);
    // SAFETY: the frame is complete; nothing on the present stack is needed any more if the call is made.
    let result = unsafe { clew_program_sigreturn(place.frame + 8) };
    set_signal_mask(u64::MAX);
    (context.registers, context.rip, context.rflags, context.is_step_fresh, context.app_signal_stack) = before;
    (context.code_selector, context.stack_selector) = selectors;
    context.pending_mask = pending_mask;
    context.note_mask(program_mask);
    set_signal_mask(mask);
    result
}

/// The same where no signal waits: one that comes on the way finds the frame (`block_in_return`). Comes back if a filter refuses
/// it that was there before the runtime.
fn return_at_once(context: &mut ThreadContext, ucontext: &UContext) {
    let own_before = context.program_mask(0);
    let mut own = *ucontext;
    own.sigmask = context.note_mask(own.sigmask);
    let place = prepare_return(context, own);
    context.set_returning(place.frame);
    if context.is_signal_waiting() {
        // It came before the handler could know.
        context.pending_mask = block_in_return(context);
    }
    // SAFETY: the frame is complete; nothing on the present stack is needed any more if the call is made.
    unsafe { clew_program_sigreturn(place.frame + 8) };
    context.set_returning(0);
    context.note_mask(own_before);
}

/// A signal came while the thread is about to return from a frame of its own, or has just done so: it is delivered behind that,
/// with everything blocked. The mask that the return gives the program.
pub fn block_in_return(context: &ThreadContext) -> u64 {
    let frame = context.returning() as *mut SigFrame;
    // SAFETY: the frame is whole and in the thread's own block; only the kernel reads it.
    unsafe {
        let place = &raw mut (*frame).ucontext.sigmask;
        let mask = place.read_unaligned();
        place.write_unaligned(ALL_BUT_FAULTS);
        mask
    }
}

/// Makes a frame in the private block for the program's rt_sigreturn: to the gate on the runtime's stack, with what else
/// `ucontext` has.
fn prepare_return(context: &ThreadContext, ucontext: UContext) -> FramePlace {
    let place = frame::own_place(context);
    let mut frame = SigFrame { return_address: 0, ucontext, info: SigInfo::ZERO };
    let machine: &mut SigContext = &mut frame.ucontext.mcontext;
    machine.rip = gate::clew_gate_landing as *const () as u64;
    machine.rsp = context.stack_top;
    machine.rflags = 0x202;
    machine.cs = USER_CS;
    machine.ss = USER_SS;
    frame.ucontext.stack = crate::thread::block::signal_stack(context);
    // SAFETY: the frame area is the thread's own.
    unsafe { (place.frame as *mut SigFrame).write_unaligned(frame) };
    place
}

global_asm!(
    ".pushsection .text.clew_sigreturn,\"ax\",@progbits",
    // i64 clew_program_sigreturn(rdi: the stack pointer that rt_sigreturn expects). Comes back if a filter refuses it: the
    // kernel leaves rdx then.
    ".globl clew_program_sigreturn",
    "clew_program_sigreturn:",
    "mov rdx, rsp",
    "mov rsp, rdi",
    "mov eax, 15",
    "syscall",
    ".globl clew_program_sigreturn_returned",
    "clew_program_sigreturn_returned:",
    "mov rsp, rdx",
    "ret",
    ".popsection",
);

extern "C" {
    fn clew_program_sigreturn(stack_pointer: u64) -> i64;
    pub fn clew_program_sigreturn_returned();
}
