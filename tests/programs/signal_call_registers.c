/* what: what a handler sees of the system call it interrupts: pc, rax, rcx, r11 and arguments, restarted, given up, and not begun
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
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
}

static __attribute__((noinline)) long call(long number, long a, void *b, long c)
{
    long result;
    register long r8 __asm__("r8") = 88;
    __asm__ volatile(".globl at_call, behind_call\n stc\nat_call: syscall\nbehind_call: nop"
                     : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r8) : "rcx", "r11", "memory", "cc");
    return result;
}

/* Whether the process waits in read. */
static int reads(pid_t pid)
{
    char name[40], text[4] = "", state[300] = "";
    snprintf(name, sizeof name, "/proc/%d/syscall", (int)pid);
    int file = open(name, O_RDONLY);
    ssize_t size = read(file, text, 2);
    close(file);
    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    file = open(name, O_RDONLY);
    ssize_t length = read(file, state, sizeof state - 1);
    close(file);
    const char *end = length > 0 ? strrchr(state, ')') : NULL;
    return size == 2 && text[0] == '0' && text[1] == ' ' && end != NULL && end[2] == 'S';
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
        pid_t helper = fork();
        if (helper == 0) {
            while (!reads(getppid()))
                usleep(200);
            kill(getppid(), SIGALRM);
            _exit(0);
        }
        if (round % 2) {
            times = 1;                       /* the handler lets the restarted read end */
            note("restarted", call(0, tube[0], &byte, 1));
        } else {
            note("given up", call(0, tube[0], &byte, 1));
        }
        waitpid(helper, NULL, 0);
    }
    for (int round = 0; round < 2; round++) {
        struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
        sigaction(SIGUSR1, &action, NULL);
        times = 10;
        note("sent to itself", call(62, getpid(), (void *)(long)SIGUSR1, 7));
    }
    return 0;
}
