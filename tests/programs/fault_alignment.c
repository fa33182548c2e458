/* what: the alignment check flag: SIGBUS with its code for accesses that are not aligned, around branches, calls, system calls, signals
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include "note.h"

static char bytes[64] __attribute__((aligned(64)));
static sigjmp_buf back;
static volatile int flag_in_handler, flag_after;

static long flags(void)
{
    long value;
    __asm__ volatile("pushfq\n pop %0" : "=r"(value));
    return value;
}

static void set_flag(void) { __asm__ volatile("pushfq\n orl $0x40000, (%%rsp)\n popfq" ::: "cc", "memory"); }

static void clear_flag(void) { __asm__ volatile("pushfq\n andl $~0x40000, (%%rsp)\n popfq" ::: "cc", "memory"); }

static void handler(int number, siginfo_t *info, void *opaque)
{
    flag_in_handler = (flags() >> 18) & 1;
    clear_flag();
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("  code", info->si_code);
    note("  address", number == SIGBUS ? (long)info->si_addr : 0);
    note("  trap", registers[REG_TRAPNO]);
    note("  error", registers[REG_ERR]);
    note("  flag in the frame", (registers[REG_EFL] >> 18) & 1);
    note("  flag in the handler", flag_in_handler);
    if (number == SIGBUS)
        siglongjmp(back, 1);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    for (volatile int round = 0; round < 3; round++) {
        if (sigsetjmp(back, 1) == 0) {
            set_flag();
            __asm__ volatile("mov 1(%0), %%eax" ::"r"(bytes) : "eax", "memory");
        }
        clear_flag();
        if (sigsetjmp(back, 1) == 0) {
            set_flag();
            __asm__ volatile("call 1f\n jmp 2f\n 1: lea 3f(%%rip), %%rax\n jmp *%%rax\n nop\n 3: ret\n 2: mov $39, %%eax\n"
                             "sub $128, %%rsp\n syscall\n add $128, %%rsp\n movw %%ax, 3(%0)"
                             ::"r"(bytes) : "rax", "rcx", "r11", "memory");
        }
        clear_flag();
        /* Aligned, and bytes: nothing happens; the flag is kept over system calls. */
        long before, after;
        __asm__ volatile("sub $128, %%rsp\n pushfq\n orl $0x40000, (%%rsp)\n popfq\n mov 8(%2), %%rax\n mov 3(%2), %%al\n"
                         "mov $39, %%eax\n syscall\n pushfq\n pop %0\n andl $~0x40000, -8(%%rsp)\n pushq -8(%%rsp)\n popfq\n"
                         "pushfq\n pop %1\n add $128, %%rsp"
                         : "=&r"(before), "=&r"(after) : "r"(bytes) : "rax", "rcx", "r11", "memory", "cc");
        note("kept", before >> 18 & 1);
        note("cleared", after >> 18 & 1);
        int pid = getpid();
        set_flag();
        __asm__ volatile("sub $128, %%rsp\n mov $62, %%eax\n mov %0, %%edi\n mov $10, %%esi\n syscall\n add $128, %%rsp"
                         ::"r"(pid) : "rax", "rdi", "rsi", "rcx", "r11", "memory");
        flag_after = (flags() >> 18) & 1;
        clear_flag();
        note("kept over a handler", flag_after);
    }
    return 0;
}
