//! The gates: the only ways between translated code and the runtime's Rust.
//!
//! Runs in the target, entered by jumps from the code cache. A gate saves what Rust may clobber (general registers,
//! flags, xmm0 to 15, MXCSR) into the thread's context, changes to the runtime's stack and calls `clew_dispatch`, which
//! returns the cache address to go on at. The rest of the vector state, and x87, stay in the processor all the time.
//! The text of the gates that make system calls is in calling_gates.rs.
//!
//! A signal that arrives inside a gate finds the thread in one of the ranges exported at the end; signal/interrupt
//! says what it does there.

use super::calling_gates::{calling_gates, lines};
use super::dispatcher::{clew_dispatch_entry, N_CALLS, REASON_ATTACH, REASON_EXIT, REASON_INDIRECT};
use super::dispatcher::{REASON_RESUME, REASON_SYSCALL, REASON_SYSCALL_AGAIN, REASON_SYSCALL_DONE};
use super::selectors::{USER_CS, USER_SS};
use super::xmm::{load_xmm, save_xmm};
use crate::arch::code_span::CODE_SPAN;
use crate::context::ThreadContext;
use crate::sys::calls::EFAULT;
use core::arch::global_asm;
use core::mem::offset_of;

/// The general registers out of the context that gs holds, but rsp and r11, which leads out of a gate.
macro_rules! load_general {
    () => {
        concat!(
            "mov rax, gs:[{rax}]\n mov rcx, gs:[{rcx}]\n mov rdx, gs:[{rdx}]\n mov rbx, gs:[{rbx}]\n mov rbp, gs:[{rbp}]\n mov rsi, gs:[{rsi}]\n mov rdi, gs:[{rdi}]\n",
            "mov r8, gs:[{r8}]\n mov r9, gs:[{r9}]\n mov r10, gs:[{r10}]\n mov r12, gs:[{r12}]\n mov r13, gs:[{r13}]\n mov r14, gs:[{r14}]\n mov r15, gs:[{r15}]\n"
        )
    };
}

global_asm!(
    ".pushsection .text.clew_gates,\"ax\",@progbits",
    // Default MXCSR: all exceptions masked, round to nearest.
    ".balign 4",
    "clew_default_mxcsr: .long 0x1f80",
    // ------------------------------------------------------------------------------------------ direct exits
    ".balign 16",
    ".globl clew_gate_exit",
    "clew_gate_exit:",
    "mov dword ptr gs:[{reason}], {REASON_EXIT}",
    "clew_save_all:",
    "mov gs:[{rsp}], rsp",
    "clew_save_all_but_rsp:",
    "mov gs:[{rax}], rax",
    "mov gs:[{rcx}], rcx",
    "mov gs:[{rdx}], rdx",
    "mov gs:[{rbx}], rbx",
    "mov gs:[{rbp}], rbp",
    "mov gs:[{rsi}], rsi",
    "mov gs:[{rdi}], rdi",
    "mov gs:[{r8}], r8",
    "mov gs:[{r9}], r9",
    "mov gs:[{r10}], r10",
    "mov gs:[{r11}], r11",
    "mov gs:[{r12}], r12",
    "mov gs:[{r13}], r13",
    "mov gs:[{r14}], r14",
    "mov gs:[{r15}], r15",
    "mov rsp, gs:[{stack_top}]",
    "pushfq",
    "pop gs:[{rflags}]",
    // Rust expects a clear direction flag and no alignment checks.
    "push 2",
    "popfq",
    "clew_save_vector:",
    save_xmm!(),
    "stmxcsr gs:[{mxcsr}]",
    "ldmxcsr [rip + clew_default_mxcsr]",
    ".globl clew_call_dispatch",
    "clew_call_dispatch:",
    "mov rdi, gs:[{self_address}]",
    "mov esi, gs:[{reason}]",
    "call {dispatch}",
    // ------------------------------------------------------------------------------------------ back into the cache
    ".globl clew_gate_resume",
    "clew_gate_resume:",
    "cmp dword ptr gs:[{pending}], 0",
    "je 5f",
    // What waits is delivered behind the block (dispatch/apart/captures.rs), or now.
    "cmp dword ptr gs:[{is_late}], 0",
    "je clew_gate_redispatch",
    "mov dword ptr gs:[{is_late}], 0",
    "5:",
    // From here on a signal leads to clew_gate_redispatch: the context is still complete.
    "mov gs:[{jump}], rax",
    "ldmxcsr gs:[{mxcsr}]",
    load_xmm!(),
    "mov rsp, gs:[{stack_top}]",
    "push gs:[{rflags}]",
    load_general!(),
    "mov r11, gs:[{r11}]",
    "popfq",
    "mov rsp, gs:[{rsp}]",
    "jmp gs:[{jump}]",
    ".globl clew_gate_resume_end",
    "clew_gate_resume_end:",
    ".globl clew_gate_redispatch",
    "clew_gate_redispatch:",
    "mov rsp, gs:[{stack_top}]",
    "push 2",
    "popfq",
    "ldmxcsr [rip + clew_default_mxcsr]",
    "mov dword ptr gs:[{reason}], {REASON_RESUME}",
    "jmp clew_call_dispatch",
    // A new thread or process: rdi holds its context, rsp its stack, and gs is set.
    ".globl clew_gate_start",
    "clew_gate_start:",
    "mov dword ptr gs:[{reason}], {REASON_RESUME}",
    "jmp clew_call_dispatch",
    // A thread of a process that ran before the runtime came: the controller set gs and rsp; everything but the vector
    // state is in the context already.
    ".globl clew_gate_attach",
    "clew_gate_attach:",
    "mov dword ptr gs:[{reason}], {REASON_ATTACH}",
    "jmp clew_save_vector",
    // The kernel returns here (rt_sigreturn) with the application's vector state loaded; everything else is in the
    // context already.
    ".globl clew_gate_landing",
    "clew_gate_landing:",
    "mov rsp, gs:[{stack_top}]",
    "push 2",
    "popfq",
    "mov dword ptr gs:[{reason}], {REASON_RESUME}",
    "jmp clew_save_vector",
    // ------------------------------------------------------------------------------------------ to the program's own code
    // For a thread that is not followed: all is loaded, where it goes on last.
    ".globl clew_gate_native",
    "clew_gate_native:",
    "cmp dword ptr gs:[{pending}], 0",
    "jne clew_gate_redispatch",
    // From here on a signal finds the thread in the runtime, and the context complete (arch/x86_64/signal/unfollowed.rs).
    "ldmxcsr gs:[{mxcsr}]",
    load_xmm!(),
    "mov rsp, gs:[{stack_top}]",
    // What iretq takes, and the one register that gs needs.
    "push {USER_SS}",
    "push gs:[{rsp}]",
    "push gs:[{rflags}]",
    "push {USER_CS}",
    "push gs:[{pc}]",
    "push gs:[{r11}]",
    load_general!(),
    "mov r11, gs:[{gs_base}]",
    "wrgsbase r11",
    "pop r11",
    "iretq",
    // ------------------------------------------------------------------------------------------ indirect branches
    // r11 holds the target; r10 and r11 of the application are in their spill slots; `site` says where from.
    // First the pair table, which all threads share: 32 bytes an entry: target, site, whether it is used, pad, number.
    ".balign 16",
    ".globl clew_gate_indirect",
    "clew_gate_indirect:",
    "mov gs:[{target}], r11",
    "mov gs:[{spill_rax}], rax",
    "mov gs:[{spill_rdx}], rdx",
    "mov gs:[{spill_rbx}], rbx",
    // Flags in ax: overflow in al, the others in ah.
    "lahf",
    "seto al",
    "mov r10, rax",
    ".globl clew_gate_indirect_restart",
    "clew_gate_indirect_restart:",
    "cmp dword ptr gs:[{pending}], 0",
    "jne 8f",
    "mov edx, gs:[{site}]",
    "test edx, edx",
    "jns 2f",
    "xor edx, edx",
    "2:",
    "mov rax, 0x9e3779b97f4a7c15",
    "lea rbx, [r11 + rdx]",
    "imul rax, rbx",
    "shr rax, 32",
    "3:",
    "and rax, gs:[{pair_mask}]",
    "mov rbx, rax",
    "shl rbx, 5",
    "add rbx, gs:[{pair_table}]",
    "cmp dword ptr [rbx + 12], 0",
    "je 8f",
    "cmp qword ptr [rbx], r11",
    "jne 4f",
    "cmp dword ptr [rbx + 8], edx",
    "je 5f",
    "4:",
    "inc eax",
    "jmp 3b",
    "5:",
    // The pad; the branch table learns it.
    "mov rbx, [rbx + 16]",
    "test rbx, rbx",
    "jz 8f",
    "inc qword ptr gs:[{table_misses}]",
    "mov gs:[{jump}], rbx",
    "movzx eax, r11w",
    "add eax, edx",
    "mov gs:[{branch_table} + rax*8], rbx",
    "mov rbx, gs:[{spill_rbx}]",
    "mov rdx, gs:[{spill_rdx}]",
    "mov rax, r10",
    "add al, 0x7f",
    "sahf",
    "mov rax, gs:[{spill_rax}]",
    "jmp gs:[{jump}]",
    // Up to here a signal makes the lookup start again: r10, r11 and the spill slots still hold what it needs.
    ".globl clew_gate_indirect_end",
    "clew_gate_indirect_end:",
    "8:",
    "mov rax, r10",
    "add al, 0x7f",
    "sahf",
    "mov rax, gs:[{spill_rax}]",
    "mov rbx, gs:[{spill_rbx}]",
    "mov rdx, gs:[{spill_rdx}]",
    "mov r10, gs:[{spill_index}]",
    "mov r11, gs:[{spill_target}]",
    "mov dword ptr gs:[{reason}], {REASON_INDIRECT}",
    "jmp clew_save_all",
    calling_gates!(),
    ".globl clew_gates_end",
    "clew_gates_end:",
    ".popsection",
    dispatch = sym clew_dispatch_entry,
    code_span = sym CODE_SPAN,
    EFAULT = const EFAULT,
    N_CALLS = const N_CALLS,
    WAITS = const WAITS,
    REASON_EXIT = const REASON_EXIT,
    REASON_INDIRECT = const REASON_INDIRECT,
    REASON_SYSCALL = const REASON_SYSCALL,
    REASON_SYSCALL_DONE = const REASON_SYSCALL_DONE,
    REASON_SYSCALL_AGAIN = const REASON_SYSCALL_AGAIN,
    REASON_RESUME = const REASON_RESUME,
    REASON_ATTACH = const REASON_ATTACH,
    self_address = const offset_of!(ThreadContext, self_address),
    reason = const offset_of!(ThreadContext, gate.reason),
    rax = const offset_of!(ThreadContext, registers.general),
    rcx = const offset_of!(ThreadContext, registers.general) + 8,
    rdx = const offset_of!(ThreadContext, registers.general) + 16,
    rbx = const offset_of!(ThreadContext, registers.general) + 24,
    rsp = const offset_of!(ThreadContext, registers.general) + 32,
    rbp = const offset_of!(ThreadContext, registers.general) + 40,
    rsi = const offset_of!(ThreadContext, registers.general) + 48,
    rdi = const offset_of!(ThreadContext, registers.general) + 56,
    r8 = const offset_of!(ThreadContext, registers.general) + 64,
    r9 = const offset_of!(ThreadContext, registers.general) + 72,
    r10 = const offset_of!(ThreadContext, registers.general) + 80,
    r11 = const offset_of!(ThreadContext, registers.general) + 88,
    r12 = const offset_of!(ThreadContext, registers.general) + 96,
    r13 = const offset_of!(ThreadContext, registers.general) + 104,
    r14 = const offset_of!(ThreadContext, registers.general) + 112,
    r15 = const offset_of!(ThreadContext, registers.general) + 120,
    rflags = const offset_of!(ThreadContext, registers.flags),
    gs_base = const offset_of!(ThreadContext, registers.gs_base),
    pc = const offset_of!(ThreadContext, registers.pc),
    USER_CS = const USER_CS,
    USER_SS = const USER_SS,
    stack_top = const offset_of!(ThreadContext, gate.stack_top),
    xmm = const offset_of!(ThreadContext, vector.xmm),
    mxcsr = const offset_of!(ThreadContext, vector.mxcsr),
    pending = const offset_of!(ThreadContext, signals.pending),
    is_late = const offset_of!(ThreadContext, capture.is_late),
    jump = const offset_of!(ThreadContext, gate.jump),
    call_code = const offset_of!(ThreadContext, call.code),
    syscall_number = const offset_of!(ThreadContext, call.number),
    handled_calls = const offset_of!(ThreadContext, call.handled),
    is_call_allowed = const offset_of!(ThreadContext, call.is_allowed),
    call_return = const offset_of!(ThreadContext, call.goes_on_at),
    target = const offset_of!(ThreadContext, gate.target),
    site = const offset_of!(ThreadContext, gate.site),
    spill_rax = const offset_of!(ThreadContext, gate.spill_rax),
    spill_rcx = const offset_of!(ThreadContext, gate.spill_rcx),
    spill_rdx = const offset_of!(ThreadContext, gate.spill_rdx),
    spill_rbx = const offset_of!(ThreadContext, gate.spill_rbx),
    spill_index = const offset_of!(ThreadContext, gate.spill_index),
    spill_target = const offset_of!(ThreadContext, gate.spill_target),
    spill_r11 = const offset_of!(ThreadContext, gate.spill_r11),
    table_misses = const offset_of!(ThreadContext, gate.table_misses),
    pair_mask = const offset_of!(ThreadContext, gate.pair_mask),
    pair_table = const offset_of!(ThreadContext, gate.pair_table),
    branch_table = const crate::context::layout::BRANCH_TABLE_OFFSET,
);

/// What `clew_gate_return` returns if it makes no call: no call returns that.
pub const WAITS: i64 = i64::MIN;

// SAFETY: the assembly above defines them, as they are declared here.
unsafe extern "C" {
    pub fn clew_gate_exit();
    pub fn clew_call_dispatch();
    pub fn clew_gate_resume();
    pub fn clew_gate_resume_end();
    pub fn clew_gate_redispatch();
    pub fn clew_gate_native();
    pub fn clew_gate_start();
    pub fn clew_gate_attach();
    pub fn clew_gate_landing();
    pub fn clew_gate_indirect();
    pub fn clew_gate_indirect_restart();
    pub fn clew_gate_indirect_end();
    pub fn clew_gate_syscall();
    pub fn clew_syscall_checked();
    pub fn clew_syscall_instruction();
    pub fn clew_syscall_return();
    pub fn clew_syscall_done();
    pub fn clew_syscall_done_pending();
    pub fn clew_gate_syscall_end();
    pub fn clew_syscall_again_pending();
    pub fn clew_gate_syscall_allowed();
    pub fn clew_gate_return(stack_pointer: u64) -> i64;
    pub fn clew_gate_return_anyway(stack_pointer: u64) -> i64;
    pub fn clew_return_checked();
    pub fn clew_return_made();
    pub fn clew_return_refused();
    pub fn clew_gates_end();
}
