//! Faults of the program's instructions, and what else finds out by a fault: the ends of native steps, of the shadow stack, of guarded
//! accesses and comparisons.
//!
//! Called by the handler, and keeps to its rules.

use crate::cache::{Cache, Fragment};
use crate::context::addresses::AppPc;
use crate::context::layout::{SHADOW_BYTES, SHADOW_OFFSET};
use crate::context::numbers::{ExitId, FragmentId};
use crate::context::stepping::MEETS_ONCE;
use crate::context::stepping::MET_ONCE;
use crate::context::stepping::STEPPING_ALREADY;
use crate::context::stepping::STEPPING_LOADS_FLAGS;
use crate::context::stepping::STEPPING_LOCKED;
use crate::context::ThreadContext;
use crate::cpu::context::GENERAL_PROTECTION;
use crate::cpu::decode::placed::ANYWHERE;
use crate::cpu::instrument::staleness::holding_position;
use crate::cpu::selectors::{self, own_selector, USER_SS};
use crate::cpu::signal::asynchronous::handle_asynchronous;
use crate::cpu::signal::image::{is_in_image, redirect};
use crate::cpu::signal::interrupt;
use crate::cpu::sys::kernel::UContext;
use crate::cpu::sys::kernel::RESUME_FLAG;
use crate::cpu::sys::kernel::TRAP_FLAG;
use crate::cpu::sys::number;
use crate::cpu::{gate, guarded, probe_points, INDEX};
use crate::instrument::change::invalidate::is_read_as_translated;
use crate::instrument::indirect::pads::{correct_early_count, correct_early_counts};
use crate::instrument::ENGINE;
use crate::protocol::{error_code, PAGE_BYTES};
use crate::signal::table::ALL_BUT_FAULTS;
use crate::sys::calls::syscall;
use crate::sys::kernel::{SigAction, SigInfo, SEGV_PKUERR, SIGBUS, SIGSEGV, SIGTRAP, SI_KERNEL, SI_USER};

/// `fault_pending`: the kernel itself forces a SIGSEGV, with no instruction to blame.
pub const FORCED: u32 = 3;
/// `fault_pending`: a system call of the program's is answered with the signal in `fault_info`.
pub const TRAPPED: u32 = 4;

/// Whether the one instruction was executed that was to be executed natively: behind a probe of the kernel's the thread sent
/// itself the signal.
fn is_step(signal: u32, info: &SigInfo, ucontext: &UContext) -> bool {
    signal == SIGTRAP && (info.code == SI_USER || info.is_of_step(ucontext.mcontext.trapno))
}

/// More than the kernel's code has that a probe calls.
const MAX_STEPS: u32 = 200;

/// Deals with a signal that an instruction caused, of the program's or of the runtime's.
pub fn handle_fault(context: &mut ThreadContext, signal: u32, info: &SigInfo, ucontext: &mut UContext) {
    // SAFETY: only arenas and slab headers are read.
    let engine = unsafe { ENGINE.peek() };
    let pc = ucontext.mcontext.rip;
    if let Some(landing) = guarded::landing_of(pc) {
        ucontext.mcontext.rip = landing;
        return;
    }
    if engine.cache.slabs.contains(pc) && matches!(signal, SIGSEGV | SIGBUS) {
        // Translated code reads the program's memory for a capture, where it need not be.
        if let Some(landing) = context.capture.take_landing() {
            ucontext.mcontext.rip = landing;
            return;
        }
    }
    if forget_open_calls(context, info, ucontext) {
        return;
    }
    let mut info = *info;
    if engine.cache.slabs.contains(pc) && interrupt::take_aborted(&engine.cache, context, &ucontext.mcontext) {
        context.gate.note_fault_fragment(FragmentId::NONE);
        context.signals.is_fault_past = 1;
        // Where the address of the instruction is the fault's address.
        if engine.cache.slabs.contains(info.address) {
            info.address = interrupt::app_pc_at(&engine.cache, info.address).map_or(info.address, AppPc::raw);
        }
    } else if is_refused_return(context, signal, &info, ucontext) {
        // The registers are those of the frame; where the program is the context says already.
        context.registers.general = ucontext.mcontext.registers();
        context.gate.note_fault_fragment(FragmentId::NONE);
        context.signals.fault_pending = FORCED;
        context.signals.pending_mask = ucontext.sigmask;
        ucontext.sigmask |= ALL_BUT_FAULTS;
        redirect(context, ucontext, gate::clew_gate_landing as *const () as u64);
        return;
    } else if engine.cache.slabs.contains(pc) {
        if !take_back_at_fault(&engine.cache, context, signal, &mut info, ucontext) {
            return;
        }
    } else if is_in_image(pc) {
        handle_in_image(context, signal, &mut info, ucontext);
        return;
    } else if context.stepping.state != 0
        && context.stepping.breakpoint_next != AppPc::NOWHERE
        && is_step(signal, &info, ucontext)
    {
        meet_breakpoint(context, ucontext);
        return;
    } else {
        let is_done = is_step(signal, &info, ucontext);
        if is_done {
            context.stepping.breakpoint_next = AppPc::NOWHERE;
        }
        if end_step(context, ucontext, is_done) && is_done {
            redirect(context, ucontext, gate::clew_gate_landing as *const () as u64);
            return;
        }
    }
    if !context.is_signal_waiting() {
        context.signals.pending_mask = ucontext.sigmask;
    }
    context.signals.fault_info = info;
    context.signals.fault_info.signo = signal as i32;
    context.note_fault([ucontext.mcontext.err, ucontext.mcontext.trapno, ucontext.mcontext.cr2]);
    context.signals.fault_pending = 1;
    ucontext.sigmask |= ALL_BUT_FAULTS;
    redirect(context, ucontext, gate::clew_gate_landing as *const () as u64);
}

/// A fault of translated code: puts the program's state in front of the instruction into the context. `false`: it is none of the program's,
/// and dealt with.
fn take_back_at_fault(
    cache: &Cache,
    context: &mut ThreadContext,
    signal: u32,
    info: &mut SigInfo,
    ucontext: &mut UContext,
) -> bool {
    let pc = ucontext.mcontext.rip;
    context.registers.stack_selector = own_selector(ucontext.mcontext.ss, USER_SS);
    let Some((id, offset)) = interrupt::fragment_at(cache, pc) else {
        fail(context, signal, pc, info.address);
        return false;
    };
    let fragment = *cache.fragment(id);
    if let Some(failed) = failed_comparison(signal, cache, &fragment, offset) {
        // Keys hold for reading, and code that they hide is executed all the same.
        let is_hidden = signal == SIGSEGV && info.code == SEGV_PKUERR;
        let holds = is_hidden && is_read_as_translated(&fragment, guarded::read_hidden_code);
        ucontext.mcontext.rip = if holds { holding_comparison(&fragment, failed) } else { failed };
        return false;
    }
    if interrupt::skip_slot_write(cache, &fragment, offset, &mut ucontext.mcontext) {
        return false;
    }
    let app_pc = interrupt::take_back(cache, context, &ucontext.mcontext, &fragment, offset);
    // The address of the instruction is the fault's address for these (sigaction(2)).
    if info.address == pc {
        info.address = app_pc.raw();
    }
    context.gate.note_fault_fragment(id);
    // A block that was counted before it came to its end is not counted: the dispatcher adds what did run. At its very
    // start, where mostly only the trap flag stops it, it was not counted yet but if it has a leader; that counts no decision.
    if offset > fragment.code_offset() {
        correct_early_counts(cache, context, &fragment, app_pc, -1);
    } else if fragment.leader != ExitId::NONE {
        correct_early_count(cache, context, &fragment, app_pc, -1);
    }
    true
}

/// A signal like a fault's that came while the thread was in the runtime's code.
fn handle_in_image(context: &mut ThreadContext, signal: u32, info: &mut SigInfo, ucontext: &mut UContext) {
    let pc = ucontext.mcontext.rip;
    if let Some(place) = probe_points::place_of(info.address) {
        // The program asked for a signal where it set a breakpoint: it is in front of that instruction.
        info.address = place.raw();
        handle_asynchronous(context, signal, info, ucontext);
        return;
    }
    // Either somebody sent the signal with a code that only the kernel should use, and it is delivered like any
    // other that is sent; or the runtime is at fault, and then it faults again right here.
    if context.signals.doubtful_pc == pc {
        fail(context, signal, pc, info.address);
    } else {
        context.signals.doubtful_pc = pc;
        handle_asynchronous(context, signal, info, ucontext);
    }
}

/// The trap behind an instruction that was to meet a breakpoint of another's natively, or behind one of the kernel's on the way there.
fn meet_breakpoint(context: &mut ThreadContext, ucontext: &mut UContext) {
    if context.stepping.breakpoint_next != ANYWHERE
        && ucontext.mcontext.rip != context.stepping.breakpoint_next.raw()
        && context.stepping.n_breakpoint_steps < MAX_STEPS
    {
        // In the kernel's own code, which it calls there.
        context.stepping.n_breakpoint_steps += 1;
        return;
    }
    // It was met. What is there is executed, and counted, as the program's other code: from the same registers.
    let before = (context.registers, context.registers.pc, context.registers.flags);
    context.stepping.breakpoint_next = AppPc::NOWHERE;
    end_step(context, ucontext, true);
    if context.stepping.breakpoint_once == MEETS_ONCE {
        context.stepping.breakpoint_once = MET_ONCE;
        redirect(context, ucontext, gate::clew_gate_landing as *const () as u64);
        return;
    }
    (context.registers, context.registers.pc, context.registers.flags) = before;
    if context.stepping.kind & STEPPING_ALREADY == 0 {
        context.registers.flags &= !TRAP_FLAG;
    }
    context.registers.flags |= RESUME_FLAG;
    redirect(context, ucontext, gate::clew_gate_landing as *const () as u64);
}

/// Whether the kernel could not load the extended state of a frame that leads straight to the cache: it sends SIGSEGV, with the
/// registers loaded already (arch/x86/kernel/signal_64.c, rt_sigreturn). An instruction there may cause the same by a general
/// protection exception.
fn is_refused_return(context: &ThreadContext, signal: u32, info: &SigInfo, ucontext: &UContext) -> bool {
    let pc = ucontext.mcontext.rip;
    if signal != SIGSEGV
        || info.code != SI_KERNEL
        || pc != context.signals.returned_to.raw()
        || context.is_signal_waiting()
    {
        return false;
    }
    // SAFETY: only arenas and slab headers are read.
    let cache = unsafe { &ENGINE.peek().cache };
    cache.slabs.contains(pc)
        && (ucontext.mcontext.trapno != GENERAL_PROTECTION || interrupt::fragment_at(cache, pc).is_none())
}

/// The program was let run natively (arch/x86_64/signal/deliver.rs, step_native), and is taken back. Whether that was for one instruction.
fn end_step(context: &mut ThreadContext, ucontext: &mut UContext, is_done: bool) -> bool {
    context.registers.take_native(&mut ucontext.mcontext);
    let stepping = core::mem::take(&mut context.stepping.state);
    context.stepping.kind = stepping;
    if stepping & STEPPING_LOCKED != 0 {
        // SAFETY: the dispatcher took it for this thread and forgot it (dispatch/signals/natively.rs).
        unsafe { ENGINE.give_up() };
    }
    if context.stepping.native_exit == 0 {
        context.gate.note_fault_fragment(FragmentId::NONE);
    }
    if stepping == 0 {
        return false;
    }
    selectors::take_gs(context);
    if stepping & STEPPING_ALREADY == 0 && !(is_done && stepping & STEPPING_LOADS_FLAGS != 0) {
        context.registers.flags &= !TRAP_FLAG;
    }
    ucontext.sigmask = context.stepping.mask | if context.is_signal_waiting() { ALL_BUT_FAULTS } else { 0 };
    true
}

/// The shadow stack is full: what is open is forgotten, and the push is done again.
fn forget_open_calls(context: &mut ThreadContext, info: &SigInfo, ucontext: &mut UContext) -> bool {
    let above = context.self_address + SHADOW_OFFSET + SHADOW_BYTES;
    if !(above..above + PAGE_BYTES).contains(&info.address) {
        return false;
    }
    // The index is one of two registers, which the SIB byte of the store names (arch/x86_64/shadow.rs).
    const SIB: u64 = 4;
    // SAFETY: the store that faulted is in the cache, which is always readable.
    let sib = unsafe { ((ucontext.mcontext.rip + SIB) as *const u8).read() };
    if sib >> 3 & 7 == INDEX.0 & 7 {
        ucontext.mcontext.r10 = 0;
    } else {
        ucontext.mcontext.r11 = 0;
    }
    context.path.shadow_forgotten += SHADOW_BYTES / 8;
    true
}

/// Where a fragment goes on whose code differs, if it is comparing at `offset`: code that can't be read any more is not
/// what was translated. Reachable from the signal handler: reads arenas only.
fn failed_comparison(signal: u32, cache: &Cache, fragment: &Fragment, offset: u64) -> Option<u64> {
    if signal != SIGSEGV && signal != SIGBUS {
        return None;
    }
    let first = cache.map.as_slice().get(fragment.map_start as usize)?;
    let failed = u64::from(first.cache_offset);
    (offset < failed).then_some(fragment.cache_start.raw() + failed)
}

/// Where a fragment goes on whose comparison holds, and goes on at `failed` otherwise.
fn holding_comparison(fragment: &Fragment, failed: u64) -> u64 {
    let start = fragment.cache_start.raw() + fragment.code_offset();
    holding_position(failed, fragment.app_pc.raw().wrapping_sub(start).cast_signed().unsigned_abs())
}

/// A fault of the runtime itself: it says so and ends the process as the signal does.
fn fail(context: &ThreadContext, signal: u32, pc: u64, address: u64) {
    // SAFETY: `shared` is set before any thread runs and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    shared.report_error(error_code::BAD_FAULT, [u64::from(signal), pc, address, context.registers.pc.raw()]);
    let default = SigAction::default();
    let call = [u64::from(signal), &default as *const SigAction as u64, 0, 8, 0, 0];
    // SAFETY: reads `default`; the instruction faults again and the kernel acts by default.
    unsafe { syscall(number::RT_SIGACTION, call) };
}
