/* what: the frame's extended state: ymm, zmm and mask registers, MXCSR and x87 as they were, changed there, and taken back
 * build: -O1 -mno-avx
 * also: avx -O1 -DWITH_AVX
 * also: avx512 -O1 -DWITH_AVX -DWITH_AVX512
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static unsigned char seen[4096], changes;
static unsigned offset_of[10], xmm_of_frame[4], control_of_frame[3];
static uint64_t bits_in_frame;

static void handler(int number, siginfo_t *info, void *opaque)
{
    (void)number, (void)info;
    ucontext_t *context = opaque;
    unsigned char *state = (unsigned char *)context->uc_mcontext.fpregs;
    /* As much as the frame says it has (struct _fpx_sw_bytes of the kernel's sigcontext.h): what lies above it may be the
     * stack's end. */
    uint32_t size;
    memcpy(&size, state + 464 + 16, 4);
    memcpy(seen, state, size < sizeof seen ? size : sizeof seen);
    memcpy(&bits_in_frame, state + 512, 8);
    memcpy(xmm_of_frame, state + 160 + 16 * 5, 16);
    memcpy(control_of_frame, state + 24, 4);
    control_of_frame[1] = state[0] | (unsigned)state[1] << 8;
    control_of_frame[2] = state[4];
    if (changes) {
        state[160 + 16 * 5] ^= 0xff;
        if (offset_of[2])
            state[offset_of[2] + 16 * 5] ^= 0xff;
        if (offset_of[5])
            state[offset_of[5] + 8 * 3] ^= 0xff;
        if (offset_of[6])
            state[offset_of[6] + 32 * 5] ^= 0xff;
        if (offset_of[7])
            state[offset_of[7] + 64 * 4] ^= 0xff;
        state[25] ^= 0x40;            /* the rounding mode in MXCSR */
        state[1] ^= 0x04;             /* the rounding mode of x87 */
        state[32 + 16] ^= 0x10;       /* a bit of the second value on its stack */
    }
    /* A handler starts clean, and nothing that it leaves in the registers stays. */
    unsigned control = 0, word = 0;
    __asm__ volatile("stmxcsr %0\n fnstcw %1" : "=m"(control), "=m"(word));
    if (control != 0x1f80 || (word & 0xffff) != 0x37f)
        _exit(9);
    __asm__ volatile("pcmpeqd %%xmm5, %%xmm5\n fld1\n fld1\n fld1\n" ::: "xmm5");
#ifdef WITH_AVX
    __asm__ volatile("vzeroall" :::);
#endif
#ifdef WITH_AVX512
    __asm__ volatile("kxnorw %%k3, %%k3, %%k3\n vpternlogd $255, %%zmm20, %%zmm20, %%zmm20" :::);
#endif
}

static int supported(void)
{
#if defined WITH_AVX512
    return __builtin_cpu_supports("avx512bw");
#elif defined WITH_AVX
    return __builtin_cpu_supports("avx");
#else
    return 1;
#endif
}

static void round_trip(void)
{
    static unsigned char values[64], after[3][64];
    static uint64_t mask_after;
    for (int i = 0; i < 64; i++)
        values[i] = (unsigned char)(i * 5 + 1);
    unsigned mxcsr = 0x3f80, mxcsr_after = 0;
    unsigned short word = 0x0b7f, word_after = 0;
    long double x87[3] = {0};
    int pid = getpid();
    __asm__ volatile(
#if defined WITH_AVX512
        "vmovdqu64 %[values], %%zmm5\n vmovdqu64 %[values], %%zmm20\n kmovq %[values], %%k3\n"
#elif defined WITH_AVX
        "vmovdqu %[values], %%ymm5\n"
#else
        "movdqu %[values], %%xmm5\n"
#endif
        "fldcw %[word]\n fldpi\n fld1\n ldmxcsr %[mxcsr]\n"
        "mov $62, %%eax\n mov %[pid], %%edi\n mov $10, %%esi\n syscall\n"
        "stmxcsr %[mxcsr_after]\n fnstcw %[word_after]\n fstpt %[first]\n fstpt %[second]\n fninit\n"
#if defined WITH_AVX512
        "vmovdqu64 %%zmm5, %[after0]\n vmovdqu64 %%zmm20, %[after1]\n kmovq %%k3, %[mask_after]\n vzeroupper\n"
#elif defined WITH_AVX
        "vmovdqu %%ymm5, %[after0]\n vzeroupper\n"
#else
        "movdqu %%xmm5, %[after0]\n"
#endif
        : [after0] "=m"(after[0]), [after1] "=m"(after[1]), [mask_after] "=m"(mask_after), [mxcsr_after] "=m"(mxcsr_after),
          [word_after] "=m"(word_after), [first] "=m"(x87[0]), [second] "=m"(x87[1])
        : [values] "m"(values), [word] "m"(word), [mxcsr] "m"(mxcsr), [pid] "r"(pid)
        : "rax", "rcx", "rdi", "rsi", "r11", "xmm5", "memory");
    unsigned usual = 0x1f80;
    __asm__ volatile("ldmxcsr %0" ::"m"(usual));
    printf("in the frame: xmm5 %x %x mxcsr %x word %x tags %x, bits %d\n", xmm_of_frame[0], xmm_of_frame[3],
           control_of_frame[0], control_of_frame[1], control_of_frame[2], (bits_in_frame & 3) == 3);
#ifdef WITH_AVX
    if (offset_of[2])
        printf("upper half %x %x\n", seen[offset_of[2] + 16 * 5], seen[offset_of[2] + 16 * 5 + 15]);
#endif
#ifdef WITH_AVX512
    if (offset_of[7])
        printf("mask %x, upper zmm5 %x, zmm20 %x %x\n", seen[offset_of[5] + 8 * 3], seen[offset_of[6] + 32 * 5],
               seen[offset_of[7] + 64 * 4], seen[offset_of[7] + 64 * 4 + 63]);
#endif
    printf("after: mxcsr %x word %x x87 %La %La mask %lx\n", mxcsr_after, word_after, x87[0], x87[1],
           (unsigned long)mask_after);
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 64; j++)
            printf("%02x", after[i][j]);
        putchar('\n');
    }
}

int main(void)
{
    if (!supported()) {
        puts("the processor has no such registers: nothing tested");
        return 0;
    }
    unsigned a, b, c, d;
    for (unsigned i = 2; i < 10; i++)
        if (__get_cpuid_count(13, i, &a, &b, &c, &d) && a != 0 && (c & 3) == 0)
            offset_of[i] = b;
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 4; i++) {
        changes = i & 1;
        round_trip();
    }
    return 0;
}
