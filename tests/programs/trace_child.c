/* what: a tracer of its own child: PTRACE_TRACEME, its system calls, single steps, registers and memory changed, signals held back
 * build: -O1 -fno-stack-protector -fno-pie -no-pie
 * lost: released_threads
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long cell = 5;
static volatile int handled;
extern const char steps_begin[], steps_end[];

static void handler(int number) { handled = number; }

static int child(void)
{
    signal(SIGUSR1, handler);
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    syscall(SYS_getppid);
    syscall(SYS_close, 1000);
    raise(SIGSTOP);
    long sum = 0;
    __asm__ volatile(".globl steps_begin, steps_end\nsteps_begin: mov $3, %%ecx\n 1: add %%rcx, %0\n dec %%ecx\n jnz 1b\n nop\nsteps_end: nop\n"
                     : "+r"(sum) : : "rcx", "cc");
    raise(SIGUSR1);                              /* the tracer keeps it back */
    raise(SIGUSR2);                              /* and changes this one to SIGUSR1 */
    return (int)cell * 10 + (handled == SIGUSR1) + (sum == 6);
}

int main(void)
{
    int status;
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int round = 0; round < 2; round++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(child());
        waitpid(pid, &status, 0);
        printf("stopped %d by %d\n", WIFSTOPPED(status) != 0, WSTOPSIG(status));
        ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACEEXIT);
        /* System calls up to the next stop. */
        struct user_regs_struct registers;
        int entering = 1, stop;
        for (;;) {
            ptrace(PTRACE_SYSCALL, pid, 0, 0);
            waitpid(pid, &status, 0);
            stop = WSTOPSIG(status);
            if (stop != (SIGTRAP | 0x80))
                break;
            ptrace(PTRACE_GETREGS, pid, 0, &registers);
            long number = (long)registers.orig_rax;
            if (number == SYS_getppid || number == SYS_close) {
                if (entering && number == SYS_close) {
                    printf("close of %lld, made getpid of\n", registers.rdi);
                    registers.orig_rax = SYS_getpid;
                    ptrace(PTRACE_SETREGS, pid, 0, &registers);
                } else if (!entering) {
                    printf("call gave %d\n", (pid_t)registers.rax == (number == SYS_getppid ? getpid() : pid));
                }
            } else if (!entering && number == SYS_getpid && (pid_t)registers.rax == pid && registers.rdi == 1000) {
                puts("and it was");
            }
            entering = !entering;
        }
        printf("next stop %d\n", stop);
        /* A breakpoint at the place to step from. */
        long there = ptrace(PTRACE_PEEKTEXT, pid, steps_begin, 0);
        ptrace(PTRACE_POKETEXT, pid, steps_begin, (there & ~0xffl) | 0xcc);
        ptrace(PTRACE_CONT, pid, 0, 0);
        waitpid(pid, &status, 0);
        ptrace(PTRACE_GETREGS, pid, 0, &registers);
        printf("breakpoint %d, behind it %d\n", WSTOPSIG(status), registers.rip == (uintptr_t)steps_begin + 1);
        ptrace(PTRACE_POKETEXT, pid, steps_begin, there);
        registers.rip--;
        ptrace(PTRACE_SETREGS, pid, 0, &registers);
        int steps = 0;
        do {
            ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
            waitpid(pid, &status, 0);
            ptrace(PTRACE_GETREGS, pid, 0, &registers);
            steps++;
        } while (steps < 100 && registers.rip != (uintptr_t)steps_end);
        printf("%d steps\n", steps);
        ptrace(PTRACE_POKEDATA, pid, &cell, 11l);
        printf("memory %ld, here %ld\n", ptrace(PTRACE_PEEKDATA, pid, &cell, 0), cell);
        ptrace(PTRACE_CONT, pid, 0, 0);
        waitpid(pid, &status, 0);
        printf("signal %d kept back\n", WSTOPSIG(status));
        ptrace(PTRACE_CONT, pid, 0, 0);
        waitpid(pid, &status, 0);
        printf("signal %d changed\n", WSTOPSIG(status));
        ptrace(PTRACE_CONT, pid, 0, SIGUSR1);
        waitpid(pid, &status, 0);
        printf("exit stop %d\n", status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8));
        ptrace(PTRACE_CONT, pid, 0, 0);
        waitpid(pid, &status, 0);
        printf("exited %d\n", WEXITSTATUS(status));
    }
    return 0;
}
