//! The runtime's signal handler.
//!
//! Runs on the thread's runtime signal stack, at any instruction of the cache, the gates or the runtime. It takes no lock,
//! allocates nothing and calls nothing that does.

use crate::context::ThreadContext;
use crate::cpu::private_range::context_at;
use crate::cpu::signal::asynchronous::handle_asynchronous;
use crate::cpu::signal::asynchronous::hasten_to_leave;
use crate::cpu::signal::deliver;
use crate::cpu::signal::faults::handle_fault;
use crate::cpu::signal::image::is_in_image;
use crate::cpu::signal::image::program_calls;
use crate::cpu::signal::unfollowed;
use crate::cpu::sys::kernel::UContext;
use crate::cpu::sys::kernel::TRAP_FLAG;
use crate::cpu::{gate, guarded, parking};
use crate::instrument::ENGINE;
use crate::signal::{merging, nested, stepping};
use crate::sys::calls::TRAPPED;
use crate::sys::kernel::{SigInfo, SIGSYS, SIGTRAP, SI_USER, SYS_SECCOMP, TRAP_TRACE};
use core::arch::global_asm;

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

/// Whether the processor trapped because the program set the trap flag; the instruction just done may have cleared it. In the
/// runtime that is so where the processor does not say why it trapped, too: there is no int1.
fn is_of_trap_flag(context: &ThreadContext, signal: u32, info: &SigInfo, ucontext: &UContext) -> bool {
    let machine = &ucontext.mcontext;
    let is_told = info.code == TRAP_TRACE || machine.rflags & TRAP_FLAG != 0 || is_in_image(machine.rip);
    let is_trap = signal == SIGTRAP && info.is_of_step(machine.trapno) && info.address == machine.rip;
    is_trap && is_told && context.stepping.state == 0
}

/// Whether the program's instruction that was to be executed natively was a probe of the kernel's, which executed what is behind it
/// and tells of it as a signal that the thread sent itself (arch/x86/kernel/uprobes.c, arch_uprobe_skip_sstep).
fn is_step_of_kernel(context: &ThreadContext, ucontext: &UContext) -> bool {
    let pc = ucontext.mcontext.rip;
    // SAFETY: slabs are published by an atomic and never move.
    let slabs = unsafe { &ENGINE.peek().cache.slabs };
    context.stepping.state != 0 && pc != context.registers.pc.raw() && !is_in_image(pc) && !slabs.contains(pc)
}

extern "C" fn handle(signal: u32, info: &SigInfo, ucontext: &mut UContext, stack: u64) {
    if signal == SIGTRAP && parking::is_parked_at(ucontext.mcontext.rip) {
        // The controller was killed while the thread parked for it: nobody took its trap.
        return;
    }
    let Some(pointer) = context_at(stack) else {
        deliver::deliver_in_place(signal, info, ucontext, stack);
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
    guarded::note_handlers_keys();
    if context.is_released != 0 {
        deliver::deliver_native(context, signal, info, ucontext);
        return;
    }
    if context.native.runs != 0 {
        unfollowed::take_back(context, signal, info, ucontext);
        return;
    }
    if nested::is_of_controller(signal, info) {
        nested::take_back_opening(context, info, ucontext);
        // SAFETY: `shared` is set before any thread runs and never changes.
        let shared = unsafe { ENGINE.peek() }.shared;
        let has_directive = shared.directive_count() != context.hold.directives_done;
        if shared.is_detaching() || shared.hold_ticket() != 0 || has_directive {
            hasten_to_leave(context, ucontext);
        }
        // Else the controller gave up meanwhile; the program knows nothing of it.
        return;
    }
    if is_of_trap_flag(context, signal, info, ucontext) {
        let pc = ucontext.mcontext.rip;
        if is_in_image(pc) {
            // In a gate the program's instruction is under way.
            context.stepping.is_fresh |= u32::from(stepping::is_after_syscall(pc));
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
    if is_of_copied_call || info.is_caused_by_instruction(signal) {
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
            context.call.code = 0;
            machine.rip = gate::clew_syscall_done_pending as *const () as u64;
        }
        Some(_) => machine.rax = TRAPPED as u64,
    }
    context.signals.fault_info = *info;
    context.call.is_trapped = 1;
    true
}
