//! The runtime's signal handler.
//!
//! Runs on the thread's runtime signal stack, at any instruction of the cache, the gates or the runtime. It takes no lock,
//! allocates nothing and calls nothing that does.

use super::interrupt::{self, Interruption};
use super::table::ALL_BUT_FAULTS;
use super::{blocked, deliver, merging, returning, stepping};
use crate::arch::x86_64::context::{context_at, ThreadContext, GIVES, RESTART_ARMED, RESTART_DUE};
use crate::arch::x86_64::context::{MEETS_ONCE, MET_ONCE, STEPPING_ALREADY, STEPPING_LOADS_FLAGS, STEPPING_LOCKED};
use crate::arch::x86_64::context::{PENDING_FETCHED, PENDING_LEAVE, PENDING_SIGNAL, SHADOW_BYTES, SHADOW_OFFSET};
use crate::arch::x86_64::selectors::{self, own_selector, USER_CS, USER_SS};
use crate::arch::x86_64::{gate, guarded, parking, probe_points, INDEX};
use crate::cache::links::UNDELIVERED;
use crate::cache::{Cache, Fragment, NONE};
use crate::decode::placed::ANYWHERE;
use crate::instrument::pads::correct_early_counts;
use crate::instrument::ENGINE;
use crate::protocol::{error_code, DETACH_CODE};
use crate::sys::calls::{clew_program_call_returned, syscall, TRAPPED};
use crate::sys::kernel::{
    SigAction, SigInfo, UContext, DEBUG_EXCEPTION, FAULT_SIGNALS, RESUME_FLAG, SIGBUS, SIGSEGV, SIGSYS, SIGTRAP,
    SI_USER, SYS_SECCOMP, TRAP_FLAG, TRAP_TRACE, UNBLOCKABLE,
};
use crate::sys::number;
use crate::thread::create::clew_clone_returned;
use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering};

global_asm!(
    ".pushsection .text.clew_signal,\"ax\",@progbits",
    // The kernel enters here: rdi signal, rsi info, rdx ucontext.
    ".globl clew_signal_entry",
    "clew_signal_entry:",
    // Direction and alignment check flags may be the program's; the kernel's frame keeps them.
    "mov rcx, rsp",
    "push 2",
    "popfq",
    "sub rsp, 8",
    "call {handle}",
    "add rsp, 8",
    "ret",
    ".globl clew_signal_return",
    "clew_signal_return:",
    "mov eax, 15",
    "syscall",
    "ud2",
    ".popsection",
    handle = sym handle,
);

static IMAGE_START: AtomicU64 = AtomicU64::new(0);
static IMAGE_END: AtomicU64 = AtomicU64::new(0);

/// Says where the runtime's image is. Once, at the start.
pub fn set_image_range(start: u64, end: u64) {
    IMAGE_START.store(start, Ordering::Relaxed);
    IMAGE_END.store(end, Ordering::Relaxed);
}

/// Where the runtime's image is.
pub fn image_range() -> core::ops::Range<u64> {
    IMAGE_START.load(Ordering::Relaxed)..IMAGE_END.load(Ordering::Relaxed)
}

fn is_in_image(address: u64) -> bool {
    image_range().contains(&address)
}

/// The addresses behind the instructions that make the program's system calls: the gate's first, then those that Rust makes
/// in its place.
pub fn program_calls() -> [u64; 4] {
    [
        gate::clew_syscall_return as *const () as u64,
        clew_program_call_returned as *const () as u64,
        clew_clone_returned as *const () as u64,
        returning::clew_program_sigreturn_returned as *const () as u64,
    ]
}

/// si_code of signals that the kernel raised for an instruction: positive, but not those of timers and the like, which
/// these five signals never have.
fn is_caused_by_instruction(signal: u32, info: &SigInfo) -> bool {
    FAULT_SIGNALS.contains(&signal) && info.code > 0
}

/// Whether the processor trapped because the program set the trap flag; the instruction just done may have cleared it.
fn is_of_trap_flag(context: &ThreadContext, signal: u32, info: &SigInfo, ucontext: &UContext) -> bool {
    let machine = &ucontext.mcontext;
    let is_trap = signal == SIGTRAP && info.code == TRAP_TRACE && info.address == machine.rip;
    is_trap && machine.trapno == DEBUG_EXCEPTION && context.is_stepping == 0
}

/// Whether the one instruction was executed that was to be executed natively.
fn is_step(signal: u32, info: &SigInfo) -> bool {
    signal == SIGTRAP && matches!(info.code, TRAP_TRACE | SI_USER)
}

/// More than the kernel's code has that a probe calls.
const MAX_STEPS: u32 = 200;

/// Whether the program's instruction that was to be executed natively was a probe of the kernel's, which executed what is behind it
/// and tells of it as a signal that the thread sent itself (arch/x86/kernel/uprobes.c, arch_uprobe_skip_sstep).
fn is_step_of_kernel(context: &ThreadContext, ucontext: &UContext) -> bool {
    let pc = ucontext.mcontext.rip;
    // SAFETY: slabs are published by an atomic and never move.
    let slabs = unsafe { &ENGINE.peek().cache.slabs };
    context.is_stepping != 0 && pc != context.rip && !is_in_image(pc) && !slabs.contains(pc)
}

/// `fault_pending`: an indirect branch was given up for a signal; the context holds the state in front of it.
const TAKEN_BACK: u32 = 2;

extern "C" fn handle(signal: u32, info: &SigInfo, ucontext: &mut UContext, stack: u64) {
    if signal == SIGTRAP && parking::is_parked_at(ucontext.mcontext.rip) {
        // The controller was killed while the thread parked for it: nobody took its trap.
        return;
    }
    let Some(pointer) = context_at(stack) else {
        return;
    };
    // SAFETY: the signal stack lies in the block of the thread that runs this, and only that thread uses its context; the
    // interrupted code may be in the middle of using it, which is why only what is said below is changed.
    let context = unsafe { &mut *pointer };
    if context.is_released != 0 {
        deliver::deliver_native(context, signal, info, ucontext);
        return;
    }
    if signal == SIGTRAP && info.code == -(DETACH_CODE as i32) && info.rest[0] == DETACH_CODE {
        // The controller opened the mask for this signal, and says what it was.
        ucontext.sigmask = info.rest[1];
        // SAFETY: `shared` is set before any thread runs and never changes.
        let shared = unsafe { ENGINE.peek() }.shared;
        let is_wished = shared.wishes() != context.standing.wishes_minded;
        if shared.is_detaching() || shared.hold_ticket() != 0 || is_wished {
            hasten_to_leave(context, ucontext);
        }
        // Else the controller gave up meanwhile; the program knows nothing of it.
        return;
    }
    if is_of_trap_flag(context, signal, info, ucontext) {
        let pc = ucontext.mcontext.rip;
        if is_in_image(pc) {
            // In a gate the program's instruction is under way.
            context.is_step_fresh |= u32::from(stepping::is_after_syscall(pc));
            return;
        }
        // SAFETY: only arenas and slab headers are read.
        let cache = unsafe { &ENGINE.peek().cache };
        if cache.slabs.contains(pc) && !stepping::is_instruction_done(cache, context, pc) {
            return;
        }
    }
    if signal == SIGTRAP && info.code == SI_USER && is_step_of_kernel(context, ucontext) {
        handle_fault(context, signal, info, ucontext);
        return;
    }
    let is_of_filter = signal == SIGSYS && info.code == SYS_SECCOMP;
    if is_of_filter && note_trapped_call(context, info, ucontext) {
        return;
    }
    // SAFETY: only arenas and slab headers are read.
    let is_of_copied_call = is_of_filter && unsafe { &ENGINE.peek().cache }.slabs.contains(ucontext.mcontext.rip);
    if is_of_copied_call || is_caused_by_instruction(signal, info) {
        handle_fault(context, signal, info, ucontext);
    } else {
        handle_asynchronous(context, signal, info, ucontext);
    }
}

/// A seccomp filter answered a call of the program's with a signal: the dispatcher delivers it, once it knows that the call
/// was not made. `false` for signals that only look so.
fn note_trapped_call(context: &mut ThreadContext, info: &SigInfo, ucontext: &mut UContext) -> bool {
    let machine = &mut ucontext.mcontext;
    match program_calls().iter().position(|address| *address == machine.rip) {
        None => return false,
        Some(0) => {
            context.call_code = 0;
            machine.rip = gate::clew_syscall_done_pending as *const () as u64;
        }
        Some(_) => machine.rax = TRAPPED as u64,
    }
    context.fault_info = *info;
    context.is_trapped = 1;
    true
}

fn handle_fault(context: &mut ThreadContext, signal: u32, info: &SigInfo, ucontext: &mut UContext) {
    // SAFETY: only arenas and slab headers are read.
    let engine = unsafe { ENGINE.peek() };
    let pc = ucontext.mcontext.rip;
    if let Some(landing) = guarded::landing_of(pc) {
        ucontext.mcontext.rip = landing;
        return;
    }
    if forget_open_calls(context, info, ucontext) {
        return;
    }
    let mut info = *info;
    if engine.cache.slabs.contains(pc) && interrupt::take_aborted(&engine.cache, context, &ucontext.mcontext) {
        context.exit_id = NONE;
        context.is_fault_past = 1;
        // Where the address of the instruction is the fault's address.
        if engine.cache.slabs.contains(info.address) {
            info.address = interrupt::app_pc_at(&engine.cache, info.address).unwrap_or(info.address);
        }
    } else if engine.cache.slabs.contains(pc) {
        context.stack_selector = own_selector(ucontext.mcontext.ss, USER_SS);
        let Some((id, offset)) = interrupt::fragment_at(&engine.cache, pc) else {
            fail(context, signal, pc, info.address);
            return;
        };
        let fragment = *engine.cache.fragment(id);
        if let Some(failed) = failed_comparison(signal, &engine.cache, &fragment, offset) {
            ucontext.mcontext.rip = failed;
            return;
        }
        if interrupt::skip_slot_write(&engine.cache, &fragment, offset, &mut ucontext.mcontext) {
            return;
        }
        let app_pc = interrupt::take_back(&engine.cache, context, &ucontext.mcontext, &fragment, offset);
        // The address of the instruction is the fault's address for these (sigaction(2)).
        if info.address == pc {
            info.address = app_pc;
        }
        context.exit_id = id;
        // A block that was counted before it came to its end is not counted: the dispatcher adds what did run. At its very
        // start, where mostly only the trap flag stops it, it was not counted yet but if it has a leader.
        if offset > fragment.code_offset() || fragment.leader != NONE {
            correct_early_counts(&engine.cache, context, &fragment, app_pc, -1);
        }
    } else if is_in_image(pc) {
        if let Some(place) = probe_points::place_of(info.address) {
            // The program asked for a signal where it set a breakpoint: it is in front of that instruction.
            info.address = place;
            handle_asynchronous(context, signal, &info, ucontext);
            return;
        }
        // Either somebody sent the signal with a code that only the kernel should use, and it is delivered like any
        // other that is sent; or the runtime is at fault, and then it faults again right here.
        if context.doubtful_pc == pc {
            fail(context, signal, pc, info.address);
        } else {
            context.doubtful_pc = pc;
            handle_asynchronous(context, signal, &info, ucontext);
        }
        return;
    } else if context.is_stepping != 0 && context.breakpoint_next != 0 && is_step(signal, &info) {
        if context.breakpoint_next != ANYWHERE
            && pc != context.breakpoint_next
            && context.n_breakpoint_steps < MAX_STEPS
        {
            // In the kernel's own code, which it calls there.
            context.n_breakpoint_steps += 1;
            return;
        }
        // It was met. What is there is executed, and counted, as the program's other code: from the same registers.
        let before = (context.registers, context.rip, context.rflags);
        context.breakpoint_next = 0;
        end_step(context, ucontext, true);
        if context.breakpoint_once == MEETS_ONCE {
            context.breakpoint_once = MET_ONCE;
            redirect(context, ucontext, gate::clew_gate_landing as *const () as u64);
            return;
        }
        (context.registers, context.rip, context.rflags) = before;
        if context.step_kind & STEPPING_ALREADY == 0 {
            context.rflags &= !TRAP_FLAG;
        }
        context.rflags |= RESUME_FLAG;
        redirect(context, ucontext, gate::clew_gate_landing as *const () as u64);
        return;
    } else {
        let is_done = is_step(signal, &info);
        if is_done {
            context.breakpoint_next = 0;
        }
        if end_step(context, ucontext, is_done) && is_done {
            redirect(context, ucontext, gate::clew_gate_landing as *const () as u64);
            return;
        }
    }
    if !context.is_signal_waiting() {
        context.pending_mask = ucontext.sigmask;
    }
    context.fault_info = info;
    context.fault_info.signo = signal as i32;
    context.note_fault([ucontext.mcontext.err, ucontext.mcontext.trapno, ucontext.mcontext.cr2]);
    context.fault_pending = 1;
    ucontext.sigmask |= ALL_BUT_FAULTS;
    redirect(context, ucontext, gate::clew_gate_landing as *const () as u64);
}

/// The program was let run natively (signal/deliver.rs, step_native), and is taken back. Whether that was for one instruction.
fn end_step(context: &mut ThreadContext, ucontext: &mut UContext, is_done: bool) -> bool {
    let machine = &mut ucontext.mcontext;
    context.registers = machine.registers();
    context.rflags = machine.rflags;
    context.rip = machine.rip;
    context.code_selector = own_selector(machine.cs, USER_CS);
    context.stack_selector = own_selector(machine.ss, USER_SS);
    (machine.cs, machine.ss) = (USER_CS, USER_SS);
    let stepping = core::mem::take(&mut context.is_stepping);
    context.step_kind = stepping;
    if stepping & STEPPING_LOCKED != 0 {
        // SAFETY: the dispatcher took it for this thread and forgot it (dispatch/delivery.rs, fault_natively).
        unsafe { ENGINE.give_up() };
    }
    if context.native_exit == 0 {
        context.exit_id = NONE;
    }
    if stepping == 0 {
        return false;
    }
    selectors::take_gs(context);
    if stepping & STEPPING_ALREADY == 0 && !(is_done && stepping & STEPPING_LOADS_FLAGS != 0) {
        context.rflags &= !TRAP_FLAG;
    }
    ucontext.sigmask = context.step_mask | if context.is_signal_waiting() { ALL_BUT_FAULTS } else { 0 };
    true
}

/// The shadow stack is full: what is open is forgotten, and the push is done again.
fn forget_open_calls(context: &mut ThreadContext, info: &SigInfo, ucontext: &mut UContext) -> bool {
    const PAGE: u64 = 0x1000;
    let above = context.self_address + SHADOW_OFFSET + SHADOW_BYTES;
    if !(above..above + PAGE).contains(&info.address) {
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
    context.shadow_forgotten += SHADOW_BYTES / 8;
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
    (offset < failed).then_some(fragment.cache_start + failed)
}

fn handle_asynchronous(context: &mut ThreadContext, signal: u32, info: &SigInfo, ucontext: &mut UContext) {
    if context.is_signal_waiting() || context.fault_pending != 0 || holds_mask(context, ucontext) {
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
    context.pending_info = *info;
    context.pending_info.signo = signal as i32;
    context.pending_mask = match context.returning() {
        0 if context.is_stepping != 0 => context.step_mask,
        0 => ucontext.sigmask,
        _ => returning::block_in_return(context),
    };
    context.pending_word().fetch_or(PENDING_SIGNAL, Ordering::Relaxed);
    ucontext.sigmask |= ALL_BUT_FAULTS;
    hasten(context, ucontext);
}

/// Whether the program is in a system call, or about to be: the kernel may have interrupted it for the signal.
fn is_in_call(pc: u64) -> bool {
    interrupt::in_runtime(pc) != Interruption::RunOn || program_calls().contains(&pc)
}

/// Whether the dispatcher has the program's mask in its hands, and did not give it to the kernel yet.
fn holds_mask(context: &ThreadContext, ucontext: &UContext) -> bool {
    match context.holds_mask {
        0 => false,
        GIVES => (ucontext.sigmask | UNBLOCKABLE) & ALL_BUT_FAULTS == ALL_BUT_FAULTS,
        _ => true,
    }
}

/// The controller detaches, and fetches the thread out of the cache: as for a signal, but nothing is delivered.
fn hasten_to_leave(context: &mut ThreadContext, ucontext: &mut UContext) {
    let mask = ucontext.sigmask;
    let before = context.pending_word().fetch_or(PENDING_LEAVE | PENDING_FETCHED, Ordering::Relaxed);
    hasten(context, ucontext);
    if before & PENDING_FETCHED != 0 {
        UNDELIVERED.fetch_sub(1, Ordering::SeqCst);
    }
    if context.fault_pending == TAKEN_BACK {
        if !context.is_signal_waiting() {
            context.pending_mask = mask;
        }
        ucontext.sigmask |= ALL_BUT_FAULTS;
    }
}

/// Makes the thread come to the dispatcher soon, from wherever it was interrupted.
fn hasten(context: &mut ThreadContext, ucontext: &mut UContext) {
    // No exit that is unlinked here is linked again by another thread before this one took it.
    UNDELIVERED.fetch_add(1, Ordering::SeqCst);
    // SAFETY: only arenas, slab headers and cache code are touched.
    let engine = unsafe { ENGINE.peek() };
    let pc = ucontext.mcontext.rip;
    let interruption = if engine.cache.slabs.contains(pc) {
        context.stack_selector = own_selector(ucontext.mcontext.ss, USER_SS);
        interrupt::in_cache(&engine.cache, context, &ucontext.mcontext)
    } else if context.restart == RESTART_ARMED {
        context.restart = RESTART_DUE;
        // The context is complete, vector state included: what the processor holds is the runtime's.
        redirect(context, ucontext, gate::clew_gate_redispatch as *const () as u64);
        return;
    } else if is_in_image(pc) {
        if interrupt::is_call_restarted(&ucontext.mcontext) {
            // The kernel has been there: the instruction's marks are in the registers already.
            context.spill_rcx = engine.cache.exit(context.exit_id).target;
            context.spill_r11 = ucontext.mcontext.rflags;
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
            let (id, _) = interrupt::fragment_at(&engine.cache, pc).unwrap_or((NONE, 0));
            context.exit_id = id;
            if id != NONE {
                let fragment = *engine.cache.fragment(id);
                correct_early_counts(&engine.cache, context, &fragment, context.rip, -1);
            }
            context.fault_pending = TAKEN_BACK;
            redirect(context, ucontext, gate::clew_gate_landing as *const () as u64);
        }
    }
}

/// The kernel returns to `address` on the runtime's stack instead, with the vector state as it was.
fn redirect(context: &ThreadContext, ucontext: &mut UContext, address: u64) {
    ucontext.mcontext.rip = address;
    ucontext.mcontext.rsp = context.stack_top;
    ucontext.mcontext.rflags = 0x202;
}

/// A fault of the runtime itself: it says so and ends the process as the signal does.
fn fail(context: &ThreadContext, signal: u32, pc: u64, address: u64) {
    // SAFETY: `shared` is set before any thread runs and never changes.
    let shared = unsafe { ENGINE.peek() }.shared;
    shared.report_error(error_code::BAD_FAULT, [u64::from(signal), pc, address, context.rip]);
    let default = SigAction::default();
    let call = [u64::from(signal), &default as *const SigAction as u64, 0, 8, 0, 0];
    // SAFETY: reads `default`; the instruction faults again and the kernel acts by default.
    unsafe { syscall(number::RT_SIGACTION, call) };
}
