//! Signals that no instruction of the thread's causes: they wait until the thread is where they can be delivered.

use crate::cache::links::UNDELIVERED;
use crate::context::call::RESTART_ARMED;
use crate::context::call::RESTART_DUE;
use crate::context::numbers::FragmentId;
use crate::context::signals::GIVES;
use crate::context::signals::PENDING_FETCHED;
use crate::context::signals::PENDING_LEAVE;
use crate::context::signals::PENDING_SIGNAL;
use crate::context::ThreadContext;
use crate::cpu::gate;
use crate::cpu::selectors::{own_selector, USER_SS};
use crate::cpu::signal::blocked;
use crate::cpu::signal::image::{is_in_image, program_calls, redirect};
use crate::cpu::signal::interrupt::{self, Interruption};
use crate::cpu::signal::leaving;
use crate::cpu::signal::returning;
use crate::cpu::sys::kernel::UContext;
use crate::instrument::indirect::pads::correct_early_counts;
use crate::instrument::ENGINE;
use crate::signal::merging;
use crate::signal::table::ALL_BUT_FAULTS;
use crate::sys::kernel::{SigInfo, SIGSEGV, UNBLOCKABLE};
use core::sync::atomic::Ordering;

/// Makes a signal wait that was sent, and the thread come to the dispatcher.
pub(super) fn handle_asynchronous(context: &mut ThreadContext, signal: u32, info: &SigInfo, ucontext: &mut UContext) {
    if context.is_signal_waiting() || context.signals.fault_pending != 0 || holds_mask(context, ucontext) {
        blocked::hold(context, signal, info);
        return;
    }
    if signal == SIGSEGV && blocked::is_blocked_by_program(context, ucontext) {
        blocked::block_again(context, info, ucontext);
        return;
    }
    if !is_in_call(ucontext.mcontext.rip) && merging::is_merged(context, signal, info) {
        return;
    }
    context.signals.pending_info = *info;
    context.signals.pending_info.signo = signal as i32;
    returning::lead_to_landing(context, ucontext);
    context.signals.pending_mask = match context.returning() {
        0 if context.stepping.state != 0 => context.stepping.mask,
        0 => ucontext.sigmask,
        _ => returning::block_in_return(context),
    };
    context.pending_word().fetch_or(PENDING_SIGNAL, Ordering::Relaxed);
    ucontext.sigmask |= ALL_BUT_FAULTS;
    hasten(context, ucontext);
    leaving::leave_for_dispatcher(context, signal, ucontext);
}

/// Whether the program is in a system call, or about to be: the kernel may have interrupted it for the signal.
pub fn is_in_call(pc: u64) -> bool {
    interrupt::in_runtime(pc) != Interruption::RunOn || program_calls().contains(&pc)
}

/// Whether the dispatcher has the program's mask in its hands, and did not give it to the kernel yet.
pub fn holds_mask(context: &ThreadContext, ucontext: &UContext) -> bool {
    match context.signals.holds_mask {
        0 => false,
        GIVES => (ucontext.sigmask | UNBLOCKABLE) & ALL_BUT_FAULTS == ALL_BUT_FAULTS,
        _ => true,
    }
}

/// Makes the thread come to the dispatcher soon, from wherever it was interrupted.
pub fn hasten(context: &mut ThreadContext, ucontext: &mut UContext) {
    // No exit that is unlinked here is linked again by another thread before this one took it.
    UNDELIVERED.fetch_add(1, Ordering::SeqCst);
    // SAFETY: only arenas, slab headers and cache code are touched.
    let engine = unsafe { ENGINE.peek() };
    let pc = ucontext.mcontext.rip;
    let interruption = if engine.cache.slabs.contains(pc) {
        context.registers.stack_selector = own_selector(ucontext.mcontext.ss, USER_SS);
        interrupt::in_cache(&engine.cache, context, &ucontext.mcontext)
    } else if context.call.restart == RESTART_ARMED {
        context.call.restart = RESTART_DUE;
        // The context is complete, vector state included: what the processor holds is the runtime's.
        redirect(context, ucontext, gate::clew_gate_redispatch as *const () as u64);
        return;
    } else if is_in_image(pc) {
        if interrupt::is_call_restarted(&ucontext.mcontext) {
            // The kernel has been there: the instruction's marks are in the registers already.
            context.gate.spill_rcx = interrupt::behind_call(&engine.cache, context).raw();
            context.gate.spill_r11 = ucontext.mcontext.rflags;
        }
        interrupt::in_runtime(pc)
    } else {
        // Between the jump to what cannot be executed and its fault: the fault comes.
        Interruption::RunOn
    };
    match interruption {
        Interruption::RunOn => {}
        Interruption::Redirect(address) => ucontext.mcontext.rip = address,
        Interruption::TakenBack => {
            let (id, _) = interrupt::fragment_at(&engine.cache, pc).unwrap_or((FragmentId::NONE, 0));
            context.gate.note_fault_fragment(id);
            if id != FragmentId::NONE {
                let fragment = *engine.cache.fragment(id);
                correct_early_counts(&engine.cache, context, &fragment, context.registers.pc, -1);
            }
            context.signals.fault_pending = TAKEN_BACK;
            redirect(context, ucontext, gate::clew_gate_landing as *const () as u64);
        }
        Interruption::TakenBackAtStart => {
            context.gate.note_fault_fragment(FragmentId::NONE);
            context.signals.fault_pending = TAKEN_BACK;
            redirect(context, ucontext, gate::clew_gate_landing as *const () as u64);
        }
    }
}

/// The controller detaches, and fetches the thread out of the cache: as for a signal, but nothing is delivered.
pub fn hasten_to_leave(context: &mut ThreadContext, ucontext: &mut UContext) {
    let mask = ucontext.sigmask;
    returning::lead_to_landing(context, ucontext);
    let before = context.pending_word().fetch_or(PENDING_LEAVE | PENDING_FETCHED, Ordering::Relaxed);
    hasten(context, ucontext);
    if before & PENDING_FETCHED != 0 {
        UNDELIVERED.fetch_sub(1, Ordering::SeqCst);
    }
    if context.signals.fault_pending == TAKEN_BACK {
        if !context.is_signal_waiting() {
            context.signals.pending_mask = mask;
        }
        ucontext.sigmask |= ALL_BUT_FAULTS;
    }
}

/// `fault_pending`: an indirect branch was given up for a signal; the context holds the state in front of it.
pub const TAKEN_BACK: u32 = 2;
