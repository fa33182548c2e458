/* what: what a handler sees of the system call it interrupts: pc, rax, rcx, r11 and arguments, restarted, given up, and not begun
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <ucontext.h>
#include "note.h"

extern const char at_call[], behind_call[];
static int tube[2];
static volatile int times;

static void handler(int number, siginfo_t *info, void *opaque)
{
    (void)info;
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("  at the call", (uintptr_t)registers[REG_RIP] == (uintptr_t)at_call);
    note("  behind it", (uintptr_t)registers[REG_RIP] == (uintptr_t)behind_call);
    note("  rax", registers[REG_RAX]);
    note("  rcx is behind it", (uintptr_t)registers[REG_RCX] == (uintptr_t)behind_call);
    note("  r11 has the flags", (registers[REG_R11] & 0x8d5) == (registers[REG_EFL] & 0x8d5));
    note("  rdi", registers[REG_RDI] == tube[0]);
    note("  rdx", registers[REG_RDX]);
    note("  r8", registers[REG_R8]);
    note("  carry", registers[REG_EFL] & 1);
    times++;
    if (times % 2 == 0)
        if (write(tube[1], "x", 1) != 1)
            _exit(1);
    if (times % 5 == 4)
        registers[REG_RAX] = registers[REG_RAX] == 0 ? 0 : registers[REG_RAX]; /* written back as it is */
}

static __attribute__((noinline)) long call(long number, long a, void *b, long c)
{
    long result;
    register long r8 __asm__("r8") = 88;
    __asm__ volatile(".globl at_call, behind_call\n stc\nat_call: syscall\nbehind_call: nop"
                     : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r8) : "rcx", "r11", "memory", "cc");
    return result;
}

int main(void)
{
    char byte;
    if (pipe(tube) != 0)
        return 1;
    for (int round = 0; round < 4; round++) {
        struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | (round % 2 ? SA_RESTART : 0)};
        sigaction(SIGALRM, &action, NULL);
        times = 0;
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 5000}}, NULL);
        if (round % 2) {
            times = 1;                       /* the handler lets the restarted read end */
            note("restarted", call(0, tube[0], &byte, 1));
        } else {
            note("given up", call(0, tube[0], &byte, 1));
        }
    }
    for (int round = 0; round < 2; round++) {
        struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
        sigaction(SIGUSR1, &action, NULL);
        times = 10;
        note("sent to itself", call(62, getpid(), (void *)(long)SIGUSR1, 7));
    }
    return 0;
}
