/* what: SIGFPE, SIGILL, SIGTRAP, SIGBUS and SIGSEGV reach their handlers with the right code, address and registers
 * build: -O1 -fno-pie -no-pie -fno-reorder-blocks
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "note.h"

extern char at_div[], at_ud2[], at_int3[], at_branch[], at_icebp[], at_bus[], at_hlt[], at_noncanonical[], at_sse[],
    at_misaligned[];
static volatile int skip;

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("code", info->si_code);
    const char *const places[] = {at_div, at_ud2, at_int3, at_icebp, at_bus,
                                  at_hlt, at_noncanonical, at_sse, at_misaligned, at_branch};
    for (int i = 0; i < 10; i++)
        if ((const char *)registers[REG_RIP] - places[i] >= 0 && (const char *)registers[REG_RIP] - places[i] < 9) {
            note("place", i);
            note("bytes into it", (const char *)registers[REG_RIP] - places[i]);
            note("address is the place", info->si_addr == places[i]);
        }
    note("trap", registers[REG_TRAPNO]);
    note("error", registers[REG_ERR]);
    note("r15", registers[REG_R15]);
    if (number != SIGTRAP)
        registers[REG_RIP] += skip;
}

#define FAULT(text, length, ...)                                                                                       \
    do {                                                                                                               \
        skip = length;                                                                                                 \
        __asm__ volatile("mov $4711, %%r15d\n" text "\n" ::__VA_ARGS__ : "rax", "rcx", "rdx", "r15", "memory", "cc");  \
    } while (0)

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    for (int number = 1; number < 32; number++)
        if (number == SIGFPE || number == SIGILL || number == SIGTRAP || number == SIGBUS || number == SIGSEGV)
            sigaction(number, &action, NULL);
    FILE *file = tmpfile();
    char *beyond = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0);
    for (int i = 0; i < 2; i++) {
        FAULT("xor %%ecx, %%ecx\n xor %%edx, %%edx\n mov $5, %%eax\n at_div: div %%ecx", 2, "r"(0));
        FAULT("at_ud2: ud2", 2, "r"(0));
        FAULT("at_int3: int3", 0, "r"(0));
        FAULT("xor %%eax, %%eax\n at_branch: int3\n test %%eax, %%eax\n jnz 1f\n nop\n 1:", 0, "r"(0));
        FAULT("at_icebp: .byte 0xcd, 0x03", 0, "r"(0));
        FAULT("mov %0, %%rax\n at_bus: movb (%%rax), %%al", 2, "r"(beyond));
        FAULT("at_hlt: hlt", 1, "r"(0));
        FAULT("movabs $0x1122334455667788, %%rax\n at_noncanonical: movb (%%rax), %%al", 2, "r"(0));
        FAULT("mov %0, %%rax\n at_misaligned: movaps 1(%%rax), %%xmm1", 4, "r"(((uintptr_t)&action + 15) & ~(uintptr_t)15));
        static const unsigned unmasked = 0x1d80, usual = 0x1f80;
        FAULT("ldmxcsr %0\n pxor %%xmm1, %%xmm1\n pcmpeqd %%xmm0, %%xmm0\n psrld $31, %%xmm0\n cvtdq2ps %%xmm0, %%xmm0\n"
              "at_sse: divps %%xmm1, %%xmm0\n ldmxcsr %1", 3, "m"(unmasked), "m"(usual));
    }
    return 0;
}
