//! The runtime's signal handler.
//!
//! Runs on the thread's runtime signal stack, at any instruction of the cache, the gates or the runtime. It takes no lock,
//! allocates nothing and calls nothing that does.

use super::faults::handle_fault;
use super::interrupt::{self, Interruption};
use super::table::ALL_BUT_FAULTS;
use super::{blocked, deliver, leaving, merging, nested, returning, stepping};
use crate::arch::x86_64::context::{ThreadContext, GIVES, PENDING_FETCHED, PENDING_LEAVE, PENDING_SIGNAL};
use crate::arch::x86_64::context::{RESTART_ARMED, RESTART_DUE};
use crate::arch::x86_64::private_range::context_at;
use crate::arch::x86_64::selectors::{own_selector, USER_SS};
use crate::arch::x86_64::{gate, parking};
use crate::cache::links::UNDELIVERED;
use crate::cache::NONE;
use crate::instrument::pads::correct_early_counts;
use crate::instrument::ENGINE;
use crate::protocol::DETACH_CODE;
use crate::sys::calls::{clew_program_call_returned, TRAPPED};
use crate::sys::kernel::{
    SigInfo, UContext, FAULT_SIGNALS, SIGSEGV, SIGSYS, SIGTRAP, SI_USER, SYS_SECCOMP, TRAP_FLAG, TRAP_TRACE,
    UNBLOCKABLE,
};
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

/// Whether an address is in it.
pub(super) fn is_in_image(address: u64) -> bool {
    image_range().contains(&address)
}

/// The addresses behind the instructions that make the program's system calls: the gate's first, then those that Rust makes
/// in its place.
pub fn program_calls() -> [u64; 4] {
    [
        gate::clew_syscall_return as *const () as u64,
        clew_program_call_returned as *const () as u64,
        clew_clone_returned as *const () as u64,
        gate::clew_return_refused as *const () as u64,
    ]
}

/// si_code of signals that the kernel raised for an instruction: positive, but not those of timers and the like, which
/// these five signals never have.
fn is_caused_by_instruction(signal: u32, info: &SigInfo) -> bool {
    FAULT_SIGNALS.contains(&signal) && info.code > 0
}

/// Whether the processor trapped because the program set the trap flag; the instruction just done may have cleared it. In the
/// runtime that is so where the processor does not say why it trapped, too: there is no int1.
fn is_of_trap_flag(context: &ThreadContext, signal: u32, info: &SigInfo, ucontext: &UContext) -> bool {
    let machine = &ucontext.mcontext;
    let is_told = info.code == TRAP_TRACE || machine.rflags & TRAP_FLAG != 0 || is_in_image(machine.rip);
    let is_trap = signal == SIGTRAP && info.is_of_step(machine.trapno) && info.address == machine.rip;
    is_trap && is_told && context.is_stepping == 0
}

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
    if nested::is_within_handler(context, ucontext) {
        nested::put_off(context, signal, info, ucontext);
        return;
    }
    nested::begin(context);
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
        merging::note_step_done(context);
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

/// Makes a signal wait that was sent, and the thread come to the dispatcher.
pub(super) fn handle_asynchronous(context: &mut ThreadContext, signal: u32, info: &SigInfo, ucontext: &mut UContext) {
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
    returning::lead_to_landing(context, ucontext);
    context.pending_mask = match context.returning() {
        0 if context.is_stepping != 0 => context.step_mask,
        0 => ucontext.sigmask,
        _ => returning::block_in_return(context),
    };
    context.pending_word().fetch_or(PENDING_SIGNAL, Ordering::Relaxed);
    ucontext.sigmask |= ALL_BUT_FAULTS;
    hasten(context, ucontext);
    leaving::leave_for_dispatcher(context, signal, ucontext);
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
    returning::lead_to_landing(context, ucontext);
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
        Interruption::TakenBackAtStart => {
            context.exit_id = NONE;
            context.fault_pending = TAKEN_BACK;
            redirect(context, ucontext, gate::clew_gate_landing as *const () as u64);
        }
    }
}

/// The kernel returns to `address` on the runtime's stack instead, with the vector state as it was.
pub(super) fn redirect(context: &ThreadContext, ucontext: &mut UContext, address: u64) {
    ucontext.mcontext.rip = address;
    ucontext.mcontext.rsp = context.stack_top;
    ucontext.mcontext.rflags = 0x202;
}
