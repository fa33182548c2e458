//! Coming back from the program's handler: rt_sigreturn.

use crate::context::addresses::{AppPc, CachePc};
use crate::context::ThreadContext;
use crate::cpu::gate::{self, WAITS};
use crate::cpu::guarded;
use crate::cpu::selectors;
use crate::cpu::selectors::{own_selector, USER_CS, USER_PRIVILEGE, USER_SS};
use crate::cpu::signal::deliver::{change_stack, is_any_held, raise_held, usable_stack};
use crate::cpu::signal::frame::own_place;
use crate::cpu::sys::kernel::SigContext;
use crate::cpu::sys::kernel::SigFrame;
use crate::cpu::sys::kernel::UContext;
use crate::cpu::sys::kernel::UC_STRICT_RESTORE_SS;
use crate::signal::merging;
use crate::signal::table::ALL_BUT_FAULTS;
use crate::sys::calls::set_signal_mask;
use crate::sys::filter;
use crate::sys::kernel::SEGV_BIT;
use crate::thread::block::signal_stack;

/// What a frame says of where its return leads.
pub struct Return {
    pub pc: AppPc,
    /// Selectors of code and stack, as contexts hold them.
    pub selectors: (u16, u16),
}

impl Return {
    /// Whether what a frame says of selectors is not of 64-bit code.
    pub fn is_foreign(&self) -> bool {
        let (code, stack) = self.selectors;
        code != 0 || stack != 0 && !selectors::is_stack(stack)
    }
}

/// Copies the frame that the program's rt_sigreturn returns from to the thread's own frame area, if as much of it can be read as
/// the kernel reads: its ucontext, which is where the stack pointer is. Guarded copies may fault.
pub fn read_frame(context: &ThreadContext) -> Option<Return> {
    let own = own_ucontext(context);
    // SAFETY: the frame area is the thread's own.
    let bytes = unsafe { core::slice::from_raw_parts_mut(own.cast::<u8>(), size_of::<UContext>()) };
    if guarded::read_program(bytes, context.registers.general[4]) != bytes.len() {
        return None;
    }
    Some(with_own(context, |own| Return { pc: AppPc::from_raw(own.mcontext.rip), selectors: selectors_of(own) }))
}

/// Selectors of code and stack that rt_sigreturn takes from a frame (arch/x86/kernel/signal_64.c, restore_sigcontext).
fn selectors_of(ucontext: &UContext) -> (u16, u16) {
    let machine = &ucontext.mcontext;
    let code = own_selector(machine.cs | USER_PRIVILEGE, USER_CS);
    let stack = own_selector(machine.ss | USER_PRIVILEGE, USER_SS);
    let is_strict = ucontext.flags & UC_STRICT_RESTORE_SS != 0;
    (code, if code == 0 && !is_strict { usable_stack(stack) } else { stack })
}

/// The ucontext in the thread's own frame area: where the stack pointer is for rt_sigreturn.
fn own_ucontext(context: &ThreadContext) -> *mut UContext {
    (own_place(context).frame + core::mem::offset_of!(SigFrame, ucontext) as u64) as *mut UContext
}

/// Reads and changes it. The signal handler does so as well, so nothing of it is kept from one time to the next.
fn with_own<T>(context: &ThreadContext, change: impl FnOnce(&mut UContext) -> T) -> T {
    // SAFETY: the frame area is the thread's own, it is aligned, and any bytes are a ucontext.
    change(unsafe { &mut *own_ucontext(context) })
}

/// The program's rt_sigreturn from the frame that `read_frame` has copied. Loads the vector state from the program's by a real
/// rt_sigreturn, which leads straight to where `find` finds the program's code in the cache, or lands in the gate. Comes back only
/// if a seccomp filter refuses it, with what the call returned.
pub fn return_from_handler(
    context: &mut ThreadContext,
    find: impl FnOnce(&mut ThreadContext) -> Option<CachePc>,
) -> i64 {
    let selectors = (context.registers.code_selector, context.registers.stack_selector);
    let before = (
        context.registers,
        context.registers.pc,
        context.registers.flags,
        context.stepping.is_fresh,
        context.signals.stack,
    );
    let UContext { stack, sigmask: new_mask, .. } = with_own(context, |own| *own);
    take_registers(context);
    context.note_step();
    merging::note_return(context);
    // What is refused is left as it is (kernel/signal.c, restore_altstack).
    let _ = change_stack(context, &stack);
    if !filter::is_active() && !context.is_signal_waiting() && !is_any_held(context) {
        let is_refused = find(context).is_some_and(|address| return_straight(context, new_mask, address) != WAITS);
        if !is_refused {
            return_at_once(context, new_mask);
        }
    }
    // A signal that waits is delivered next, and comes back to the mask that this return restores.
    let mask = set_signal_mask(u64::MAX);
    let pending_mask = context.signals.pending_mask;
    let is_waiting = context.is_signal_waiting();
    let program_mask = context.program_mask(if is_waiting { pending_mask } else { mask });
    let mut own_mask = context.note_mask(new_mask);
    if is_waiting {
        context.signals.pending_mask = new_mask;
        own_mask = ALL_BUT_FAULTS;
    }
    raise_held(context);
    filter::open_for_trap(program_mask);
    prepare_landing(context, own_mask);
    let result = land(context);
    set_signal_mask(u64::MAX);
    (
        context.registers,
        context.registers.pc,
        context.registers.flags,
        context.stepping.is_fresh,
        context.signals.stack,
    ) = before;
    (context.registers.code_selector, context.registers.stack_selector) = selectors;
    context.signals.pending_mask = pending_mask;
    context.note_mask(program_mask);
    set_signal_mask(mask);
    result
}

/// The context's registers are those of the frame; the frame has the runtime's alternate stack.
fn take_registers(context: &mut ThreadContext) {
    // Only these flags can be set by the program (arch/x86/kernel/signal_64.c, FIX_EFLAGS).
    const SETTABLE: u64 = 0x5_0dd5;
    let stack = signal_stack(context);
    let (registers, selectors, rip, rflags) = with_own(context, |own| {
        own.stack = stack;
        (own.mcontext.registers(), selectors_of(own), own.mcontext.rip, own.mcontext.rflags)
    });
    (context.registers.code_selector, context.registers.stack_selector) = selectors;
    context.registers.general = registers;
    context.registers.pc = AppPc::from_raw(rip);
    context.registers.flags = (rflags & SETTABLE) | 0x202;
}

/// Returns to `address` in the cache, which is where the context's rip is. Comes back if the thread is to leave the gates for the
/// dispatcher, with `WAITS`, or if a filter refuses it that was there before the runtime.
fn return_straight(context: &mut ThreadContext, mask: u64, address: CachePc) -> i64 {
    let own_before = context.program_mask(0);
    let own_mask = context.note_mask(mask);
    context.signals.returned_to = address;
    with_own(context, |own| {
        own.sigmask = own_mask;
        own.mcontext.rip = address.raw();
        own.mcontext.rflags = context.registers.flags;
        (own.mcontext.cs, own.mcontext.ss) = (USER_CS, USER_SS);
    });
    give_mask_by_frame(context);
    // SAFETY: the frame is complete; nothing on the present stack is needed any more if the call is made.
    let result = unsafe { gate::clew_gate_return(own_ucontext(context) as u64) };
    context.end_return();
    context.note_mask(own_before);
    result
}

/// The frame's mask is about to be the thread's: a SIGSEGV that is put back meanwhile is to be blocked in it, too.
fn give_mask_by_frame(context: &mut ThreadContext) {
    // SAFETY: fields of a live context, which the signal handler reads and writes.
    unsafe {
        (&raw mut context.signals.gives_mask_by_frame).write_volatile(1);
        if (&raw const context.signals.is_segv_blocked).read_volatile() != 0 {
            block_segv(context);
        }
    }
}

/// SIGSEGV is blocked behind the return that the thread is about to make.
pub fn block_segv(context: &ThreadContext) {
    with_own(context, |own| own.sigmask |= SEGV_BIT);
}

/// Makes the frame return to the gate, with this mask.
fn prepare_landing(context: &ThreadContext, mask: u64) {
    with_own(context, |own| {
        own.sigmask = mask;
        lead(context, &mut own.mcontext);
    });
}

/// Returns to the gate. Comes back if a filter refuses it.
fn land(context: &ThreadContext) -> i64 {
    // SAFETY: `prepare_landing` completed the frame; nothing on the present stack is needed any more if the call is made.
    unsafe { gate::clew_gate_return_anyway(own_ucontext(context) as u64) }
}

/// The same where no signal waits: one that comes on the way finds the frame (`block_in_return`). Comes back if a filter refuses
/// it that was there before the runtime.
fn return_at_once(context: &mut ThreadContext, mask: u64) {
    let own_before = context.program_mask(0);
    let own_mask = context.note_mask(mask);
    prepare_landing(context, own_mask);
    give_mask_by_frame(context);
    // From here on a signal finds the frame.
    context.set_returning(own_place(context).frame);
    if context.is_signal_waiting() {
        // It came before the handler could know, or just now.
        context.signals.pending_mask = mask;
        block_in_return(context);
    }
    land(context);
    context.end_return();
    context.note_mask(own_before);
}

/// A signal came: if the thread is about to return straight to the cache, it lands in the gate instead. The context is as it is to
/// be behind the return, but for what landing saves.
pub fn lead_to_landing(context: &mut ThreadContext, ucontext: &mut UContext) {
    let made = gate::clew_return_made as *const () as u64;
    let on_the_way = gate::clew_return_checked as *const () as u64..gate::clew_return_refused as *const () as u64;
    if !on_the_way.contains(&ucontext.mcontext.rip) {
        return;
    }
    with_own(context, |own| lead(context, &mut own.mcontext));
    context.set_returning(own_place(context).frame);
    ucontext.mcontext.rip = made;
}

/// A signal came while the thread is about to return from a frame of its own, or has just done so: it is delivered behind that,
/// with everything blocked. The mask that the return gives the program.
pub fn block_in_return(context: &ThreadContext) -> u64 {
    with_own(context, |own| core::mem::replace(&mut own.sigmask, ALL_BUT_FAULTS))
}

/// The registers with which a thread lands in the gate, on the runtime's stack.
fn lead(context: &ThreadContext, machine: &mut SigContext) {
    machine.rip = gate::clew_gate_landing as *const () as u64;
    machine.rsp = context.gate.stack_top;
    machine.rflags = 0x202;
    machine.cs = USER_CS;
    machine.ss = USER_SS;
}
