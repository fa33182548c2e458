/* what: AMX tiles, asked for by arch_prctl: kept across branches, system calls and signals, which show them in their frames
 * build: -O1
 * needs: amx_tile amx_int8
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static char stack[65536];
static volatile int n;
static unsigned frame_bytes;

/* Without tiles in use a frame has no room for them, and one that had is taken for one without extended state. */
static void handler(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    n++;
    const struct _fpx_sw_bytes *words = (void *)((char *)((ucontext_t *)context)->uc_mcontext.fpregs + 464);
    frame_bytes = words->magic1 == FP_XSTATE_MAGIC1 ? words->extended_size : 512;
    __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0"); /* tilerelease */
}

int main(void)
{
    static unsigned char config[64] = {1}, values[1024], after[1024];
    printf("permission %ld\n", syscall(SYS_arch_prctl, 0x1023, 18));
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    sigaction(SIGUSR1, &(struct sigaction){.sa_sigaction = handler, .sa_flags = SA_ONSTACK | SA_SIGINFO}, NULL);
    raise(SIGUSR1);
    printf("%u bytes before\n", frame_bytes);
    config[16] = 64;
    config[48] = 16;
    for (int i = 0; i < 1024; i++)
        values[i] = (unsigned char)(i * 7);
    for (int i = 0; i < 3; i++) {
        memset(after, 0, sizeof after);
        int pid = getpid();
        __asm__ volatile("mov $64, %%r8d\n .byte 0xc4, 0xe2, 0x78, 0x49, 0x02\n"       /* ldtilecfg (%rdx) */
                         ".byte 0xc4, 0xa2, 0x7b, 0x4b, 0x04, 0x01\n"                  /* tileloadd (%rcx, %r8), %tmm0 */
                         "mov %%rcx, %%r9\n mov $62, %%eax\n mov %[pid], %%edi\n mov $10, %%esi\n syscall\n"
                         "mov %[after], %%rcx\n .byte 0xc4, 0xa2, 0x7a, 0x4b, 0x04, 0x01\n" /* tilestored %tmm0, (%rcx, %r8) */
                         ".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0"
                         : : "d"(config), "c"(values), [after] "r"(after), [pid] "r"(pid)
                         : "rax", "rdi", "rsi", "r8", "r9", "r11", "memory");
        printf("kept %d, %d signals, %u bytes\n", memcmp(values, after, 1024) == 0, n, frame_bytes);
    }
    return 0;
}
