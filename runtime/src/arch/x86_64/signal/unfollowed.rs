//! Threads that are not followed: they run the program's own code, and whatever the kernel has to say about that comes to the
//! handler, which leads them to the dispatcher.
//!
//! Their system calls come as signals, too (syscall user dispatch): the dispatcher makes them as it makes those of translated code.
//!
//! `take_back` is called by the handler, and keeps to its rules.

use crate::cache::links::UNDELIVERED;
use crate::context::addresses::AppPc;
use crate::context::numbers::FragmentId;
use crate::context::signals::{HOLDS, PENDING_LEAVE, PENDING_SIGNAL};
use crate::context::ThreadContext;
use crate::cpu::dispatcher::REASON_RESUME;
use crate::cpu::gate;
use crate::cpu::selectors;
use crate::cpu::signal::blocked;
use crate::cpu::signal::deliver;
use crate::cpu::signal::frame;
use crate::cpu::signal::image::{is_in_image, redirect};
use crate::cpu::signal::leaving;
use crate::cpu::sys::calls::CALL_BYTES;
use crate::cpu::sys::kernel::{UContext, AUDIT_ARCH};
use crate::signal::table::{ALL_BUT_FAULTS, ALL_BUT_MEMORY_FAULTS};
use crate::signal::{merging, nested};
use crate::sys::calls::set_signal_mask;
use crate::sys::kernel::{SigInfo, MEMORY_FAULTS, SIGSEGV, SIGSYS, SIGTRAP, SYS_USER_DISPATCH, TRAP_TRACE};
use core::arch::asm;
use core::sync::atomic::Ordering;

/// As a mask, what must come while a thread runs natively: what its instructions and its calls cause.
const NEEDED: u64 = !ALL_BUT_FAULTS;

/// The thread goes on with the program's own code at the context's pc, until a signal comes. All signals are blocked; its mask is
/// `mask`. Does not come back.
pub fn run(context: &mut ThreadContext, mask: u64) -> ! {
    (context.native.mask, context.native.is_mask_known) = (mask, 1);
    // SAFETY: a field of a live context, which the handler reads.
    unsafe { (&raw mut context.native.runs).write_volatile(1) };
    deliver::run_native(context, mask & !NEEDED)
}

/// The same without a return from a signal, nor that signals are blocked: the thread's mask is `native.mask`. Comes back if that
/// can't be.
pub fn run_at_once(context: &mut ThreadContext) {
    let needs_mask = context.native.mask & NEEDED != 0;
    if !context.registers.are_usual() || needs_mask || !selectors::has_base_instructions() {
        return;
    }
    frame::load_state(context);
    // SAFETY: as in `run`.
    unsafe { (&raw mut context.native.runs).write_volatile(1) };
    // From here on a signal leads away. One just before may have changed the mask.
    // SAFETY: a field of a live context, which the handler writes.
    if unsafe { (&raw const context.native.is_mask_known).read_volatile() } == 0 {
        // SAFETY: as in `run`.
        unsafe { (&raw mut context.native.runs).write_volatile(0) };
        return;
    }
    context.native.call_pc = AppPc::NOWHERE;
    // SAFETY: gs is the context's, which is complete; nothing on the present stack is needed any more.
    unsafe { asm!("jmp {gate}", gate = sym gate::clew_gate_native, options(noreturn)) }
}

/// A signal came while the thread ran natively: it goes to the dispatcher, with the state that it had there.
pub fn take_back(context: &mut ThreadContext, signal: u32, info: &SigInfo, ucontext: &mut UContext) {
    let pc = ucontext.mcontext.rip;
    let is_fetched = nested::is_of_controller(signal, info);
    let is_call = signal == SIGSYS && info.code == SYS_USER_DISPATCH;
    let is_fault = info.is_caused_by_instruction(signal);
    let mut is_sent = !is_call && !is_fault && !is_fetched;
    let is_blocked = is_sent && context.program_mask(context.native.mask) & 1 << (signal - 1) != 0;
    let is_asked = context.pending_word().load(Ordering::Relaxed) & PENDING_LEAVE != 0;
    if is_sent && !is_blocked && merging::is_merged(context, signal, info) {
        if !is_asked {
            return;
        }
        is_sent = false;
    }
    let address = if is_in_image(pc) {
        // On its way there: the context is complete still.
        selectors::enter_block(context);
        gate::clew_gate_redispatch
    } else {
        take_registers(context, ucontext);
        gate::clew_gate_landing
    };
    context.native.runs = 0;
    let mask = context.native.mask;
    ucontext.sigmask = mask;
    context.signals.pending_mask = mask;
    if is_call {
        context.registers.pc = context.registers.pc - CALL_BYTES;
        // Another processor's numbers are for translated code.
        let is_known = info.rest[0] >> 32 == AUDIT_ARCH;
        (context.native.is_calling, context.native.is_barred) = (u32::from(is_known), u32::from(!is_known));
        if is_known {
            leave_for_dispatcher(context, signal, ucontext, HOLDS);
        }
    } else if is_fault {
        context.native.steps_itself |= u32::from(signal == SIGTRAP && info.code == TRAP_TRACE);
        context.signals.fault_info = SigInfo { signo: signal as i32, ..*info };
        context.note_fault([ucontext.mcontext.err, ucontext.mcontext.trapno, ucontext.mcontext.cr2]);
        context.signals.fault_pending = 1;
        // Out of a restartable sequence it is elsewhere by now, and nothing here tells.
        context.signals.is_fault_past = 1;
        ucontext.sigmask |= ALL_BUT_FAULTS;
    } else if is_blocked {
        put_back(context, signal, info, ucontext);
    } else if is_sent {
        context.signals.pending_info = SigInfo { signo: signal as i32, ..*info };
        context.pending_word().fetch_or(PENDING_SIGNAL, Ordering::Relaxed);
        UNDELIVERED.fetch_add(1, Ordering::SeqCst);
        ucontext.sigmask |= ALL_BUT_FAULTS;
        leave_for_dispatcher(context, signal, ucontext, 0);
    }
    redirect(context, ucontext, address as *const () as u64);
}

/// Leaves the handler for the dispatcher as `leaving::leave_for_dispatcher` does, where that can be. Else comes back, with nothing
/// changed. The dispatcher loads the state, and gives the thread its mask; where no signal waits what is sent until then is held
/// back (`holds`).
fn leave_for_dispatcher(context: &mut ThreadContext, signal: u32, ucontext: &UContext, holds: u32) {
    let is_usual = context.registers.are_usual() && !context.registers.are_stepped();
    if is_in_image(ucontext.mcontext.rip) || !is_usual || !frame::keep_state(context, &ucontext.mcontext) {
        return;
    }
    context.gate.reason = REASON_RESUME;
    // SAFETY: a field of a live context, which the handler reads.
    unsafe { (&raw mut context.signals.holds_mask).write_volatile(holds) };
    // What the dispatcher needs is open by the handler's own mask, as a rule. What comes here is held back.
    if MEMORY_FAULTS & 1 << (signal - 1) != 0 || nested::is_deaf(context) {
        set_signal_mask(ALL_BUT_MEMORY_FAULTS);
    }
    leaving::go_to_dispatcher(context)
}

/// The thread's state is that of the program's code that was interrupted.
fn take_registers(context: &mut ThreadContext, ucontext: &mut UContext) {
    context.registers.take_native(&mut ucontext.mcontext);
    context.gate.note_fault_fragment(FragmentId::NONE);
    selectors::take_gs(context);
}

/// A signal was sent that the program blocks, and the kernel did not, for its like must come: it waits in the kernel, where the
/// program can look for it, and the thread does not run natively meanwhile.
fn put_back(context: &mut ThreadContext, signal: u32, info: &SigInfo, ucontext: &mut UContext) {
    context.native.is_barred = 1;
    if signal == SIGSEGV {
        blocked::block_again(context, info, ucontext);
    } else {
        deliver::send_again(&SigInfo { signo: signal as i32, ..*info });
    }
}
