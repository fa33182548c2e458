/* what: handlers that corrupt the extended state of their frame: magic numbers, sizes, header, MXCSR, features; noticed or ignored
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

static sigjmp_buf back;
static int kind;
static unsigned char *state_of(void *context) { return (unsigned char *)((ucontext_t *)context)->uc_mcontext.fpregs; }

static void on_segv(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    note("  SIGSEGV, code", info->si_code);
    note("  address", (long)info->si_addr);
    siglongjmp(back, 1);
}

static void spoil(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    unsigned char *state = state_of(context);
    uint32_t *software = (uint32_t *)(state + 464), size = software[4];
    uint64_t *header = (uint64_t *)(state + 512);
    state[160] = 0x77;                                           /* xmm0 */
    switch (kind) {
    case 0: break;
    case 1: software[0] = 0; break;                              /* first magic number */
    case 2: software[4] = 0; break;                              /* size of the state */
    case 3: software[4] = 0x7fffffff; break;
    case 4: software[1] = 0; break;                              /* size with the second magic number */
    case 5: *(uint32_t *)(state + size) = 0; break;              /* second magic number */
    case 6: software[2] = 0, software[3] = 0; break;             /* features that are there: none */
    case 7: software[2] = ~0u, software[3] = ~0u; break;
    case 8: header[0] = ~0ull; break;                            /* features in use: all */
    case 9: header[0] = 0; break;                                /* none: initial values */
    case 10: header[1] = 1ull << 63; break;                      /* compacted */
    case 11: header[3] = 1; break;                               /* reserved */
    case 12: *(uint32_t *)(state + 24) = ~0u; break;             /* MXCSR */
    case 13: header[0] = 1; break;                               /* x87 only */
    case 14: software[2] = 1, software[3] = 0; break;
    case 15: ((ucontext_t *)context)->uc_mcontext.fpregs = (void *)(state + 1); break;
    case 16: ((ucontext_t *)context)->uc_flags = 0; break;
    case 17: ((ucontext_t *)context)->uc_mcontext.fpregs = NULL; break;
    case 18: memset(state, 0xff, 400); break;
    }
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    action.sa_sigaction = spoil;
    sigaction(SIGUSR1, &action, NULL);
    int pid = getpid();
    static const unsigned control = 0x3f80, usual = 0x1f80;
    for (int round = 0; round < 2; round++)
        for (kind = 0; kind < 19; kind++) {
            note("kind", kind);
            uint64_t low = 0, high = 0;
            unsigned after = 0;
            if (sigsetjmp(back, 1) == 0) {
                __asm__ volatile("ldmxcsr %[control]\n movabs $0x1122334455667788, %%rax\n movq %%rax, %%xmm0\n movq %%rax, %%xmm7\n"
                                 "mov $62, %%eax\n mov %[pid], %%edi\n mov $10, %%esi\n syscall\n"
                                 "movq %%xmm0, %[low]\n movq %%xmm7, %[high]\n stmxcsr %[after]\n ldmxcsr %[usual]\n"
                                 : [low] "=m"(low), [high] "=m"(high), [after] "=m"(after)
                                 : [control] "m"(control), [usual] "m"(usual), [pid] "r"(pid)
                                 : "rax", "rcx", "rdi", "rsi", "r11", "xmm0", "xmm7", "memory");
                note("  xmm0", (long)low);
                note("  xmm7", (long)high);
                note("  mxcsr", after);
            }
            __asm__ volatile("fninit\n ldmxcsr %0" ::"m"(usual));
        }
    return 0;
}
