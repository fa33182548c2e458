/* what: a parent attaches to its child and puts a breakpoint where that never was: stops there, shows its registers, goes on behind it
 * build: -O1
 * lost: released_threads
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include "note.h"

long work(long value);
__asm__(".globl work\n"
        "work: lea 3(%rdi), %rax\n"
        "ret\n");

int main(void)
{
    int ready[2], status;
    if (pipe(ready) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        char byte;
        while (read(ready[0], &byte, 1) < 0)
            continue;
        _exit((int)work(4) + (int)work(5));
    }
    ptrace(PTRACE_ATTACH, child, NULL, NULL);
    waitpid(child, &status, 0);
    note("stopped", WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    const long code = ptrace(PTRACE_PEEKTEXT, child, work, NULL);
    ptrace(PTRACE_POKETEXT, child, work, (code & ~0xffl) | 0xcc);
    ptrace(PTRACE_CONT, child, NULL, NULL);
    if (write(ready[1], "x", 1) != 1)
        return 1;
    waitpid(child, &status, 0);
    note("trapped", WIFSTOPPED(status) ? WSTOPSIG(status) : -status);
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, child, NULL, &registers);
    note("at", (long)(registers.rip - (uintptr_t)work));
    note("argument", (long)registers.rdi);
    ptrace(PTRACE_POKETEXT, child, work, code);
    registers.rip = (uintptr_t)work;
    ptrace(PTRACE_SETREGS, child, NULL, &registers);
    ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
    waitpid(child, &status, 0);
    ptrace(PTRACE_GETREGS, child, NULL, &registers);
    note("behind", (long)(registers.rip - (uintptr_t)work));
    note("result", (long)registers.rax);
    ptrace(PTRACE_POKETEXT, child, work, (code & ~0xffl) | 0xcc);
    ptrace(PTRACE_CONT, child, NULL, NULL);
    waitpid(child, &status, 0);
    note("again", WIFSTOPPED(status) ? WSTOPSIG(status) : -status);
    ptrace(PTRACE_GETREGS, child, NULL, &registers);
    note("argument", (long)registers.rdi);
    ptrace(PTRACE_POKETEXT, child, work, code);
    registers.rip = (uintptr_t)work;
    ptrace(PTRACE_SETREGS, child, NULL, &registers);
    ptrace(PTRACE_DETACH, child, NULL, NULL);
    waitpid(child, &status, 0);
    note("status", WEXITSTATUS(status));
    return 0;
}
