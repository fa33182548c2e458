//! Delivering a signal to the program's handler, natively where it is not followed, and what is held back of signals.

use crate::context::addresses::AppPc;
use crate::context::stepping::STEPPING;
use crate::context::stepping::STEPPING_ALREADY;
use crate::context::ThreadContext;
use crate::cpu::call_dispatch;
use crate::cpu::extended_state;
use crate::cpu::guarded;
use crate::cpu::selectors::{self, USER_CS, USER_SS};
use crate::cpu::signal::frame::{self, FrameContent};
use crate::cpu::sys::kernel::SigFrame;
use crate::cpu::sys::kernel::UContext;
use crate::cpu::sys::kernel::TRAP_FLAG;
use crate::cpu::sys::number;
use crate::signal::table::{table_of, SignalTable, ALL_BUT_FAULTS, SIGNALS};
use crate::sys::calls::{set_signal_mask, syscall, Error, EINVAL, ENOMEM, EPERM};
use crate::sys::kernel::{
    SigAction, SigInfo, SigStack, CLONE_CLEAR_SIGHAND, MINSIGSTKSZ, SA_NODEFER, SA_ONSTACK, SA_RESETHAND, SA_RESTORER,
    SIG_DFL, SIG_IGN, SI_USER, SS_AUTODISARM, SS_DISABLE, SS_ONSTACK,
};
use core::arch::asm;

/// Trap, direction and resume flags are off in a handler (arch/x86/kernel/signal.c, handle_signal).
const HANDLER_CLEARED_FLAGS: u64 = 0x100 | 0x400 | 0x10000;

/// What became of a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// The context goes on in the handler, with this mask.
    Handler(u64),
    /// The program ignores it.
    Ignored,
    /// The kernel's default action is due.
    Default,
    /// The frame can't be written; nothing was changed.
    NoRoom,
}

/// Whether `sp` is on the program's alternate stack.
fn is_on_stack(stack: &SigStack, sp: u64) -> bool {
    stack.flags & SS_AUTODISARM == 0 && is_inside(stack, sp)
}

/// As the kernel's __on_sig_stack (include/linux/sched/signal.h).
fn is_inside(stack: &SigStack, sp: u64) -> bool {
    sp > stack.sp && sp - stack.sp <= stack.size
}

/// The program's alternate stack as `sigaltstack` shows it. Frames show it as it was set.
pub fn shown_stack(context: &ThreadContext) -> SigStack {
    let stack = context.signals.stack;
    let flags = if stack.size == 0 {
        SS_DISABLE
    } else if is_on_stack(&stack, context.registers.general[4]) {
        SS_ONSTACK
    } else {
        0
    };
    SigStack { flags: flags | (stack.flags & SS_AUTODISARM), ..stack }
}

/// Changes the program's alternate stack, as the kernel's do_sigaltstack (kernel/signal.c).
pub fn change_stack(context: &mut ThreadContext, new: &SigStack) -> Result<(), Error> {
    if is_on_stack(&context.signals.stack, context.registers.general[4]) {
        return Err(Error(EPERM));
    }
    let stack = &context.signals.stack;
    // What is there already is never too small: that of a thread that has none, too.
    let is_same = (new.sp, new.size, new.flags) == (stack.sp, stack.size, stack.flags);
    context.signals.stack = match new.flags & !SS_AUTODISARM {
        SS_DISABLE => SigStack { sp: 0, size: 0, ..*new },
        0 | SS_ONSTACK if new.size < MINSIGSTKSZ && !is_same => return Err(Error(ENOMEM)),
        0 | SS_ONSTACK => *new,
        _ => return Err(Error(EINVAL)),
    };
    Ok(())
}

/// Makes the context go on in the handler of `info`'s signal. `mask` is the program's mask when the signal came; what it
/// is in the handler is returned, not set: another signal must not come before its edge is counted and what waits is done.
///
/// On the runtime's stack, no lock held.
pub fn deliver(context: &mut ThreadContext, info: &SigInfo, mask: u64, details: [u64; 3]) -> Delivery {
    let signal = info.signo as u32;
    let waiting_mask = if context.signals.has_temporary_mask != 0 { context.signals.temporary_mask } else { mask };
    let action = {
        let mut table = table_of(context).lock();
        let action = table.action(signal);
        match action.handler {
            SIG_DFL | SIG_IGN => {
                context.signals.has_temporary_mask = 0;
                return if action.handler == SIG_DFL { Delivery::Default } else { Delivery::Ignored };
            }
            _ => {}
        }
        if action.flags & SA_RESETHAND != 0 {
            table.reset_handler(signal);
        }
        action
    };
    enter(context, info, &action, (mask, waiting_mask), details)
}

/// The same with an action that is not the program's own, perhaps. `masks`: the one in place, and the one that the handler's is
/// made of.
pub fn enter(
    context: &mut ThreadContext,
    info: &SigInfo,
    action: &SigAction,
    masks: (u64, u64),
    details: [u64; 3],
) -> Delivery {
    let ((mask, waiting_mask), signal) = (masks, info.signo as u32);
    // Without a restorer the kernel builds no frame (arch/x86/kernel/signal_64.c, x64_setup_rt_frame).
    if action.flags & SA_RESTORER == 0 {
        return Delivery::NoRoom;
    }
    let stack = context.signals.stack;
    let sp = context.registers.general[4];
    // The red zone counts for whether the handler is to change stacks, not for whether it was on it already
    // (arch/x86/kernel/signal.c, get_sigframe).
    let below = sp.wrapping_sub(128);
    let is_entering = action.flags & SA_ONSTACK != 0 && stack.size != 0 && !is_on_stack(&stack, below);
    let top = if is_entering { stack.sp.wrapping_add(stack.size) } else { below };
    let features = extended_state::features();
    let place = frame::place_below(top, features);
    // Neither does the kernel write beyond the end of an alternate stack.
    if (is_entering || is_on_stack(&stack, sp)) && !is_inside(&stack, place.frame) {
        return Delivery::NoRoom;
    }
    let content =
        FrameContent { rip: context.registers.pc.raw(), return_address: action.restorer, info, mask, stack, details };
    if !frame::write_to_program(place, context, &content, features) {
        return Delivery::NoRoom;
    }
    context.signals.has_temporary_mask = 0;
    if stack.flags & SS_AUTODISARM != 0 {
        context.signals.stack = SigStack::DISABLED;
    }
    context.registers.general[4] = place.frame;
    context.registers.general[7] = u64::from(signal);
    context.registers.general[6] = place.frame + core::mem::offset_of!(SigFrame, info) as u64;
    context.registers.general[2] = place.frame + core::mem::offset_of!(SigFrame, ucontext) as u64;
    context.registers.general[0] = 0;
    context.registers.pc = AppPc::from_raw(action.handler);
    context.registers.code_selector = 0;
    context.registers.stack_selector = usable_stack(context.registers.stack_selector);
    context.registers.flags &= !HANDLER_CLEARED_FLAGS;
    context.stepping.is_fresh = 0;
    // A handler starts with the default control word and vector state (fpu__clear_user_states).
    reset_vector_state(context);
    let mut new_mask = waiting_mask | action.mask;
    if action.flags & SA_NODEFER == 0 {
        new_mask |= 1 << (signal - 1);
    }
    Delivery::Handler(new_mask)
}

/// The stack selector with which 64-bit code goes on that had another one: its own, as contexts hold it, or the usual one
/// (arch/x86/kernel/signal.c, force_valid_ss).
pub(super) fn usable_stack(selector: u16) -> u16 {
    if selector != 0 && selectors::is_stack(selector) {
        selector
    } else {
        0
    }
}

/// xmm and MXCSR as a handler finds them; the rest of the state the kernel would clear, too, or did.
fn reset_vector_state(context: &mut ThreadContext) {
    context.vector.mxcsr = 0x1f80;
    context.vector.xmm = [[0; 2]; 16];
    if core::mem::take(&mut context.signals.has_state_apart) != 0 {
        return;
    }
    let place = frame::own_place(context);
    // SAFETY: the thread's own frame area is large enough for a zeroed XSAVE area; XRSTOR of one whose header is zero
    // makes all components initial. The x87 control word needs no memory image then.
    unsafe {
        core::ptr::write_bytes(place.fpstate as *mut u8, 0, 576);
        (place.fpstate as *mut u8).add(24).cast::<u32>().write(0x1f80);
        if extended_state::has_xsave() {
            // All but protection keys (component 9), which are not initial in a handler, but the kernel's.
            asm!("xrstor64 [{0}]", in(reg) place.fpstate, in("eax") !(1u32 << 9), in("edx") u32::MAX,
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _, options(nostack));
        }
    }
    guarded::take_handlers_keys();
}

/// # Safety
/// `frame` must be a whole signal frame that may be returned from.
unsafe fn sigreturn(frame: u64) -> ! {
    // SAFETY: rt_sigreturn expects the stack pointer just above the return address.
    unsafe {
        asm!("mov rsp, {0}", "mov eax, 15", "syscall", "ud2", in(reg) frame + 8,
            options(noreturn))
    }
}

/// The thread goes on natively at the context's rip, with the program's mask `mask`. Does not come back.
pub fn release_native(context: &mut ThreadContext, mask: u64) -> ! {
    // From the mark below on, a signal's frame goes where the stack pointer is, which is still the runtime's.
    set_signal_mask(u64::MAX);
    call_dispatch::end(context);
    frame::load_state(context);
    context.is_released = 1;
    selectors::give_gs(context);
    resume_natively(context, mask, crate::thread::block::signal_stack(context))
}

/// The thread executes one instruction natively at the context's rip, all else the program's own; the trap behind it brings the
/// thread back. A fault that comes has all that the processor and the kernel say of it. `kind`: more of `STEPPING`. All signals
/// are blocked; the thread's mask is `mask` when it comes back (arch/x86_64/signal/faults.rs). Does not come back.
pub fn step_native(context: &mut ThreadContext, mask: u64, kind: u32) -> ! {
    let is_already = if context.registers.flags & TRAP_FLAG == 0 { 0 } else { STEPPING_ALREADY };
    context.stepping.state = STEPPING | is_already | kind;
    context.stepping.mask = mask;
    context.registers.flags |= TRAP_FLAG;
    run_native(context, ALL_BUT_FAULTS)
}

/// The thread goes on natively at the context's rip, with the mask `mask` and the runtime's handlers, until one of those takes it
/// back (arch/x86_64/signal/unfollowed.rs). All signals are blocked. Does not come back.
pub fn run_native(context: &mut ThreadContext, mask: u64) -> ! {
    frame::load_state(context);
    selectors::give_gs(context);
    resume_natively(context, mask, crate::thread::block::signal_stack(context))
}

/// As `release_native`, for a new process: the program's alternate stack is the kernel's again, too.
pub fn release_process(context: &mut ThreadContext, mask: u64) -> ! {
    // SAFETY: plain data; after a fork nobody else runs here, and the lock's holder may be a thread that was not copied.
    unsafe { table_of(context).peek() }.restore_native(context.process.child_flags & CLONE_CLEAR_SIGHAND == 0);
    frame::load_state(context);
    go_native(context, mask, shown_stack(context))
}

/// The thread goes on natively at the context's rip with the program's mask and alternate stack; nobody follows it any more.
/// All signals are blocked. Does not come back.
pub fn go_native(context: &ThreadContext, mask: u64, stack: SigStack) -> ! {
    selectors::give_gs(context);
    resume_natively(context, mask, stack)
}

/// A real rt_sigreturn to the context's state.
fn resume_natively(context: &ThreadContext, mask: u64, stack: SigStack) -> ! {
    let content = FrameContent {
        rip: context.registers.pc.raw(),
        return_address: 0,
        info: &SigInfo::ZERO,
        mask,
        stack,
        details: [0; 3],
    };
    let place = frame::write_to_own(context, &content);
    // SAFETY: the frame is complete; nothing on the present stack is needed any more.
    unsafe { sigreturn(place.frame) }
}

/// A signal for a thread that was released: the frame goes to the program's stack as the kernel would put it there, and
/// the kernel goes on in the handler.
pub fn deliver_native(context: &mut ThreadContext, signal: u32, info: &SigInfo, ucontext: &mut UContext) {
    // SAFETY: the table is plain data; a torn read could only come from a sigaction that races with this signal.
    let Some(action) = native_action(unsafe { table_of(context).peek() }, signal) else {
        return;
    };
    let sp = ucontext.mcontext.rsp;
    let stack = context.signals.stack;
    let top = if action.flags & SA_ONSTACK != 0 && stack.size != 0 && !is_on_stack(&stack, sp) {
        stack.sp + stack.size
    } else {
        sp.wrapping_sub(128)
    };
    let source = ucontext.mcontext.fpstate as *const u8;
    // SAFETY: the frame is the kernel's.
    let fpstate_bytes = unsafe { frame::kernel_fpstate_bytes(source) };
    let place = frame::place_with_state(top, fpstate_bytes);
    let mut frame = SigFrame { return_address: action.restorer, ucontext: *ucontext, info: *info };
    frame.ucontext.mcontext.fpstate = place.fpstate;
    frame.ucontext.stack = stack;
    // SAFETY: the kernel would write the same bytes to the program's stack; the source is the kernel's own frame.
    unsafe {
        core::ptr::copy_nonoverlapping(source, place.fpstate as *mut u8, fpstate_bytes);
        (place.frame as *mut SigFrame).write_unaligned(frame);
    }
    let machine = &mut ucontext.mcontext;
    machine.rsp = place.frame;
    machine.rdi = u64::from(signal);
    machine.rsi = place.frame + core::mem::offset_of!(SigFrame, info) as u64;
    machine.rdx = place.frame + core::mem::offset_of!(SigFrame, ucontext) as u64;
    machine.rax = 0;
    machine.rip = action.handler;
    machine.cs = USER_CS;
    machine.ss = if selectors::is_stack(machine.ss) { machine.ss } else { USER_SS };
    machine.rflags &= !HANDLER_CLEARED_FLAGS;
    ucontext.sigmask |= blocked_in_handler(&action, signal);
}

/// A signal for a thread that has no context: one that was released and has come back from a handler, which gave it the program's
/// alternate stack, or one that such a thread made. The handler is entered in the kernel's frame, which is at `frame`. Comes back if
/// there is no handler.
pub fn deliver_in_place(signal: u32, info: &SigInfo, ucontext: &UContext, frame: u64) {
    // SAFETY: as in `deliver_native`.
    let Some(action) = native_action(unsafe { SIGNALS.peek() }, signal) else {
        return;
    };
    // SAFETY: where the frame begins the kernel has put where the handler returns to.
    unsafe { (frame as *mut u64).write(action.restorer) };
    set_signal_mask(ucontext.sigmask | blocked_in_handler(&action, signal));
    // SAFETY: the stack is as the kernel left it; nothing above it is the runtime's.
    unsafe {
        asm!(
            "mov rsp, {frame}",
            "xor eax, eax",
            "jmp {handler}",
            frame = in(reg) frame,
            handler = in(reg) action.handler,
            in("rdi") u64::from(signal),
            in("rsi") info,
            in("rdx") ucontext,
            options(noreturn)
        )
    }
}

/// What the program does natively about a signal that came to the runtime's handler; `None`: it comes again, with the kernel's own
/// action.
fn native_action(table: &SignalTable, signal: u32) -> Option<SigAction> {
    let action = table.action(signal);
    if action.handler == SIG_DFL || action.handler == SIG_IGN {
        // A fault by default.
        table.restore_default(signal);
        return None;
    }
    Some(action)
}

/// The signals that are blocked in a handler besides those that are anyway.
fn blocked_in_handler(action: &SigAction, signal: u32) -> u64 {
    action.mask | if action.flags & SA_NODEFER == 0 { 1 << (signal - 1) } else { 0 }
}

/// Raises a signal for the calling thread again, as it came, now that its default action is in place.
pub fn raise_again(info: &SigInfo) {
    let signal = info.signo as u64;
    let (pid, tid) = (crate::sys::calls::getpid(), crate::sys::calls::gettid());
    let call = [u64::from(pid), u64::from(tid), signal, info as *const SigInfo as u64, 0, 0];
    // SAFETY: reads `info`; a task may say anything to itself.
    let result = unsafe { syscall(number::RT_TGSIGQUEUEINFO, call) };
    if result < 0 {
        // SAFETY: no memory.
        unsafe { syscall(number::TGKILL, [u64::from(pid), u64::from(tid), signal, 0, 0, 0]) };
    }
}

/// Whether anything is held back.
pub fn is_any_held(context: &ThreadContext) -> bool {
    // SAFETY: fields of a live context, which the signal handler writes.
    context.signals.held.iter().any(|info| unsafe { (&raw const info.signo).read_volatile() } != 0)
}

/// Sends again what was held back. Everything is blocked.
pub fn raise_held(context: &mut ThreadContext) {
    for info in &mut context.signals.held {
        if info.signo != 0 {
            raise_again(info);
            info.signo = 0;
        }
    }
}

/// Raises a signal again that was sent to the calling thread, or to the process and is any thread's to take.
pub fn send_again(info: &SigInfo) {
    const RT_SIGQUEUEINFO: u64 = 129;
    const SI_QUEUE: i32 = -1;
    if info.code != SI_USER && info.code != SI_QUEUE {
        raise_again(info);
        return;
    }
    let call = [u64::from(crate::sys::calls::getpid()), info.signo as u64, info as *const SigInfo as u64, 0, 0, 0];
    // SAFETY: reads `info`; a process may say anything to itself.
    if unsafe { syscall(RT_SIGQUEUEINFO, call) } < 0 {
        raise_again(info);
    }
}
