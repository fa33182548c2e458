/* what: the system calls of a child that was attached to: entered and left, their numbers, arguments and place; one is made another, one left out
 * build: -O1
 * lost: released_threads
 */
#include "trace.h"
#include <linux/ptrace.h>

static struct __ptrace_syscall_info call_info(pid_t child)
{
    struct __ptrace_syscall_info info = {0};
    ptrace((enum __ptrace_request)PTRACE_GET_SYSCALL_INFO, child, (void *)sizeof info, &info);
    return info;
}

int main(void)
{
    struct gate begun = make_gate(), told = make_gate();
    pid_t child = fork();
    if (child == 0) {
        open_gate(begun);
        pass_gate(told);
        const long first = syscall(SYS_getuid) == (long)getuid();
        const long second = syscall(SYS_getppid) == getpid();
        const long third = syscall(SYS_lseek, -1, 3, 5);
        const int error = errno;
        _exit((int)(first + second * 2 + (third == 77) * 4 + (error == 0) * 8));
    }
    pass_gate(begun);
    note("attach", ptrace(PTRACE_ATTACH, child, NULL, NULL));
    note("stopped", wait_stop(child));
    note("options", ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_TRACESYSGOOD));
    open_gate(told);
    int has_begun = 0, stop;
    for (;;) {
        ptrace(PTRACE_SYSCALL, child, NULL, NULL);
        stop = wait_stop(child);
        if (stop != SYSCALL_STOP)
            break;
        struct user_regs_struct registers = registers_of(child);
        struct __ptrace_syscall_info info = call_info(child);
        const long call = (long)registers.orig_rax;
        /* In which of the calls before that it was attached to is not known. */
        has_begun |= call == SYS_getuid && info.op == PTRACE_SYSCALL_INFO_ENTRY;
        if (!has_begun)
            continue;
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
            note("call", call);
            note("is told", (long)info.entry.nr == call);
            note("result there", (long)registers.rax);
            note("from code", is_in_code(child, info.instruction_pointer) && registers.rip == info.instruction_pointer);
            note("own stack", info.stack_pointer == registers.rsp && registers.rsp >> 40 == (uintptr_t)&info >> 40);
            if (call == SYS_getppid)
                registers.orig_rax = SYS_getpid;
            if (call == SYS_lseek) {
                note("arguments", (int)registers.rdi + (long)registers.rsi * 10 + (long)registers.rdx * 100);
                registers.orig_rax = (uint64_t)-1;
            }
            ptrace(PTRACE_SETREGS, child, NULL, &registers);
        } else if (info.op == PTRACE_SYSCALL_INFO_EXIT) {
            note("left", call == SYS_getpid ? registers.rax == (uint64_t)child : call);
            if (call == -1) {
                registers.rax = 77;
                ptrace(PTRACE_SETREGS, child, NULL, &registers);
            }
        } else {
            note("neither", info.op);
        }
    }
    note("ended", stop);
    return 0;
}
