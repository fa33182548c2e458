//! The text of the gates that make system calls: the program's own, and rt_sigreturn, which ends a handler.
//!
//! Runs in the target, entered from the code cache and from the runtime. It is part of the assembly in gate.rs, which
//! has its operands and the declarations of its labels: so all gates lie in one stretch, where threads are looked for.

/// Text of which each literal is a line.
macro_rules! lines {
    ($($line:literal),* $(,)?) => {
        concat!($($line, "\n"),*)
    };
}

macro_rules! calling_gates {
    () => {
        lines!(
            // ---------------------------------------------------------------------------------- system calls
            // rcx holds the cache address to go on at; the application's rcx and r11 are in their spill slots.
            ".balign 16",
            ".globl clew_gate_syscall",
            "clew_gate_syscall:",
            "mov gs:[{jump}], rcx",
            "mov gs:[{rsp}], rsp",
            "mov rsp, gs:[{stack_top}]",
            "pushfq",
            "pop r11",
            // The kernel looks at eax alone.
            "mov ecx, eax",
            "cmp ecx, {N_CALLS}",
            "jb 1f",
            "mov ecx, {N_CALLS}",
            "1:",
            "push rdx",
            "mov rdx, gs:[{handled_calls}]",
            "cmp byte ptr [rdx + rcx], 0",
            "pop rdx",
            "jne 2f",
            // Neither do those that name code that might be written.
            "cmp qword ptr [rip + {code_span} + 8], 0",
            "je 5f",
            ".irp argument, rdi, rsi, rdx, r10, r8, r9",
            "mov rcx, \\argument",
            "sub rcx, [rip + {code_span}]",
            "cmp rcx, [rip + {code_span} + 8]",
            "jb 2f",
            ".endr",
            "5:",
            "push r11",
            "popfq",
            "mov rsp, gs:[{rsp}]",
            "clew_syscall_check:",
            "mov gs:[{syscall_number}], rax",
            "mov ecx, gs:[{pending}]",
            // A signal from here on, up to the system call or when it is restarted, is delivered before the call is
            // made.
            ".globl clew_syscall_checked",
            "clew_syscall_checked:",
            "jrcxz clew_syscall_instruction",
            "jmp clew_syscall_again_pending",
            ".globl clew_syscall_instruction",
            "clew_syscall_instruction:",
            "syscall",
            ".globl clew_syscall_return",
            "clew_syscall_return:",
            "mov dword ptr gs:[{call_code}], 0",
            // Where the kernel could not write, code may be why (dispatch/apart/written.rs).
            "lea rcx, [rax + {EFAULT}]",
            "jrcxz clew_syscall_done_pending",
            "mov ecx, gs:[{pending}]",
            // A signal from here on is delivered now that the call is done.
            ".globl clew_syscall_done",
            "clew_syscall_done:",
            "jrcxz 3f",
            ".globl clew_syscall_done_pending",
            "clew_syscall_done_pending:",
            "mov dword ptr gs:[{reason}], {REASON_SYSCALL_DONE}",
            "jmp clew_save_all",
            "3:",
            "jmp gs:[{jump}]",
            ".globl clew_gate_syscall_end",
            "clew_gate_syscall_end:",
            "2:",
            "push r11",
            "popfq",
            "mov rsp, gs:[{rsp}]",
            "mov rcx, gs:[{spill_rcx}]",
            "mov r11, gs:[{spill_r11}]",
            "mov dword ptr gs:[{reason}], {REASON_SYSCALL}",
            "jmp clew_save_all",
            ".globl clew_syscall_again_pending",
            "clew_syscall_again_pending:",
            "mov rsp, gs:[{rsp}]",
            "mov rcx, gs:[{spill_rcx}]",
            "mov r11, gs:[{spill_r11}]",
            "mov dword ptr gs:[{reason}], {REASON_SYSCALL_AGAIN}",
            "jmp clew_save_all",
            // clew_gate_resume leads here when the dispatcher had a look at a call that the gate is to make. The
            // application's rcx and r11 are in their spill slots still.
            ".globl clew_gate_syscall_allowed",
            "clew_gate_syscall_allowed:",
            "mov dword ptr gs:[{is_call_allowed}], 0",
            "mov rcx, gs:[{call_return}]",
            "mov gs:[{jump}], rcx",
            "jmp clew_syscall_check",
            // ---------------------------------------------------------------------------------- returns from handlers
            // i64 clew_gate_return(rdi: the stack pointer that rt_sigreturn expects): to where the frame says, unless
            // the thread is to leave the gates: `WAITS` then. From the check on a signal makes the frame lead to
            // clew_gate_landing (arch/x86_64/signal/returning.rs). Comes back as well if a filter refuses the call: the
            // kernel leaves rdx then.
            ".globl clew_gate_return",
            "clew_gate_return:",
            "mov rdx, rsp",
            ".globl clew_return_checked",
            "clew_return_checked:",
            "cmp dword ptr gs:[{pending}], 0",
            "jne 9f",
            ".globl clew_return_made",
            "clew_return_made:",
            "mov rsp, rdi",
            "mov eax, 15",
            "syscall",
            ".globl clew_return_refused",
            "clew_return_refused:",
            "mov rsp, rdx",
            "ret",
            "9:",
            "mov rax, {WAITS}",
            "ret",
            // i64 clew_gate_return_anyway(rdi: the same): the frame leads to clew_gate_landing.
            ".globl clew_gate_return_anyway",
            "clew_gate_return_anyway:",
            "mov rdx, rsp",
            "jmp clew_return_made",
        )
    };
}

pub(super) use {calling_gates, lines};
