/* what: SIGFPE: division by zero and overflow, each SSE and x87 exception unmasked, AVX ones: codes, pc, status words
 * build: -O1 -fno-pie -no-pie -fno-reorder-blocks
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include "note.h"

static sigjmp_buf back;
static volatile uintptr_t from, to;

static void handler(int number, siginfo_t *info, void *opaque)
{
    ucontext_t *context = opaque;
    greg_t *registers = context->uc_mcontext.gregs;
    note("signal", number);
    note("  code", info->si_code);
    note("  pc in the instruction", (uintptr_t)registers[REG_RIP] - from < to - from);
    note("  its start", (uintptr_t)registers[REG_RIP] == from);
    note("  address is the pc", (greg_t)info->si_addr == registers[REG_RIP]);
    note("  trap", registers[REG_TRAPNO]);
    note("  error", registers[REG_ERR]);
    note("  mxcsr", context->uc_mcontext.fpregs->mxcsr);
    note("  status word", context->uc_mcontext.fpregs->swd);
    note("  control word", context->uc_mcontext.fpregs->cwd);
    siglongjmp(back, 1);
}

#define FAULT(name, before, text, ...)                                                                                 \
    do {                                                                                                               \
        puts(name);                                                                                                    \
        fflush(stdout);                                                                                                \
        if (sigsetjmp(back, 1) == 0) {                                                                                 \
            __asm__ volatile(before "\n lea 1f(%%rip), %%r8\n mov %%r8, %[from]\n lea 2f(%%rip), %%r8\n mov %%r8, %[to]\n"              \
                             "1: " text "\n 2:\n"                                                                      \
                             : [from] "=m"(from), [to] "=m"(to)                                                        \
                             : __VA_ARGS__                                                                             \
                             : "rax", "rcx", "rdx", "r8", "xmm0", "xmm1", "memory", "cc");                             \
            puts("no fault");                                                                                          \
        }                                                                                                              \
        unsigned usual = 0x1f80;                                                                                       \
        __asm__ volatile("fninit\n ldmxcsr %0" ::"m"(usual));                                                          \
    } while (0)

#define SSE(name, bit, text, a, b)                                                                                     \
    do {                                                                                                               \
        double first = a, second = b;                                                                                  \
        unsigned control = 0x1f80 & ~(0x80u << (bit));                                                                 \
        FAULT(name, "movsd %[first], %%xmm0\n movsd %[second], %%xmm1\n ldmxcsr %[control]", text, [first] "m"(first),           \
              [second] "m"(second), [control] "m"(control));                                                           \
    } while (0)

#define X87(name, bit, text, a, b)                                                                                     \
    do {                                                                                                               \
        double first = a, second = b;                                                                                  \
        unsigned short control = (unsigned short)(0x37f & ~(1u << (bit)));                                             \
        FAULT(name, "fldl %[first]\n fldl %[second]\n fldcw %[control]\n " text, "fwait", [first] "m"(first),            \
              [second] "m"(second), [control] "m"(control));                                                           \
    } while (0)

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGFPE, &action, NULL);
    for (int round = 0; round < 2; round++) {
        FAULT("div by zero", "xor %%ecx, %%ecx\n xor %%edx, %%edx\n mov $5, %%eax", "div %%ecx", "r"(0));
        FAULT("idiv by zero, memory", "push $0\n xor %%edx, %%edx\n mov $5, %%eax", "idivq (%%rsp)", "r"(0));
        FAULT("div overflow", "mov $1, %%ecx\n mov $1, %%edx\n mov $5, %%eax", "div %%rcx", "r"(0));
        FAULT("idiv overflow", "mov $-1, %%ecx\n mov $0x80000000, %%eax\n cltd", "idiv %%ecx", "r"(0));
        FAULT("byte division", "mov $0x300, %%eax\n mov $2, %%cl", "div %%cl", "r"(0));
        SSE("sse invalid", 0, "divsd %%xmm1, %%xmm0", 0.0, 0.0);
        SSE("sse denormal", 1, "addsd %%xmm1, %%xmm0", 4e-320, 1.0);
        SSE("sse division", 2, "divsd %%xmm1, %%xmm0", 1.0, 0.0);
        SSE("sse overflow", 3, "mulsd %%xmm1, %%xmm0", 1e300, 1e300);
        SSE("sse underflow", 4, "mulsd %%xmm1, %%xmm0", 1e-300, 1e-300);
        SSE("sse inexact", 5, "divsd %%xmm1, %%xmm0", 1.0, 3.0);
        SSE("sse conversion", 0, "cvttsd2si %%xmm0, %%eax", 1e300, 0.0);
        SSE("sse comparison", 0, "comisd %%xmm1, %%xmm0", __builtin_nan(""), 0.0);
        if (__builtin_cpu_supports("avx"))
            SSE("avx division", 2, "vdivpd %%xmm1, %%xmm0, %%xmm0", 1.0, 0.0);
        X87("x87 invalid", 0, "fdivp", 0.0, 0.0);
        X87("x87 denormal", 1, "faddp", 4e-320, 1.0);
        X87("x87 division", 2, "fdivrp", 0.0, 1.0);
        X87("x87 inexact", 5, "fdivrp", 3.0, 1.0);
        X87("x87 stack", 0, "fstp %%st(0)\n fstp %%st(0)\n fstp %%st(0)", 1.0, 1.0);
        X87("x87 overflow", 3, "fscale", 20000.0, 1.0);
        X87("x87 overflow when stored", 3, "fmul %%st(0), %%st(0)\n fstps -8(%%rsp)", 1e300, 1e300);
    }
    return 0;
}
