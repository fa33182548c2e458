/* what: a fast timer whose handler clobbers all vector registers, against loops, calls and jumps that hold values in them
 * build: -O1 -mno-avx -fno-stack-protector
 * also: avx512 -O1 -DWITH_AVX512 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

static volatile sig_atomic_t n, wrong;
static volatile int is_inside;

#ifdef WITH_AVX512
#define SET "vpbroadcastq %[value], %%zmm0\n vmovdqa64 %%zmm0, %%zmm9\n vmovdqa64 %%zmm0, %%zmm21\n kmovw %k[value], %%k2\n"
#define CHECK                                                                                                          \
    "vpcmpeqq %%zmm0, %%zmm9, %%k1\n vpcmpeqq %%zmm0, %%zmm21, %%k1%{%%k1%}\n kmovw %%k1, %k[same]\n kmovw %%k2, %k[mask]\n vmovq %%xmm9, %[low]\n" \
    "vzeroupper\n"
#else
#define SET "movq %[value], %%xmm0\n punpcklqdq %%xmm0, %%xmm0\n movdqa %%xmm0, %%xmm9\n"
#define CHECK "pcmpeqd %%xmm9, %%xmm0\n pmovmskb %%xmm0, %k[same]\n movq %%xmm9, %[low]\n"
#endif

static void handler(int number, siginfo_t *info, void *opaque)
{
    (void)number, (void)info;
    n++;
    /* In the loops the frame shows one value in both registers. */
    const struct _libc_fpstate *state = ((ucontext_t *)opaque)->uc_mcontext.fpregs;
    if (is_inside && memcmp(&state->_xmm[9], &((const uint32_t *)&state->_xmm[9])[2], 8) != 0)
        wrong++;
#ifdef WITH_AVX512
    __asm__ volatile("vpternlogd $255, %%zmm0, %%zmm0, %%zmm0\n vmovdqa64 %%zmm0, %%zmm9\n vmovdqa64 %%zmm0, %%zmm21\n kxorw %%k2, %%k2, %%k2\n vzeroupper" ::: "xmm0", "xmm9");
#else
    __asm__ volatile("pcmpeqd %%xmm0, %%xmm0\n pcmpeqd %%xmm9, %%xmm9" ::: "xmm0", "xmm9");
#endif
}

static __attribute__((used, noinline)) void callee(void) { __asm__ volatile("nop"); }

int main(void)
{
#ifdef WITH_AVX512
    if (!__builtin_cpu_supports("avx512f")) {
        puts("the processor has no AVX-512: nothing tested");
        return 0;
    }
#endif
    sigaction(SIGALRM, &(struct sigaction){.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 200}, {0, 200}}, NULL);
    unsigned long rounds = 0, changed = 0;
    while (n < 300) {
        uint64_t value = 0x0101010101010101ull * (rounds % 200 + 1), low = 0, same = 0, mask = value & 0xffff;
        __asm__ volatile("sub $128, %%rsp\n" SET
                         "movl $1, %[inside]\n mov $500, %%ecx\n"
                         "1: call callee\n lea 2f(%%rip), %%rax\n jmp *%%rax\n nop\n 2: test $3, %%ecx\n jz 3f\n push %%rax\n pop %%rax\n"
                         "3: dec %%ecx\n jnz 1b\n mov $39, %%eax\n syscall\n movl $0, %[inside]\n" CHECK "add $128, %%rsp"
                         : [same] "=&r"(same), [low] "=&r"(low), [mask] "+&r"(mask), [inside] "+m"(is_inside)
                         : [value] "r"(value)
                         : "rax", "rcx", "r11", "xmm0", "xmm9", "memory", "cc");
#ifdef WITH_AVX512
        changed += (same & 0xff) != 0xff || (mask & 0xffff) != (value & 0xffff);
#else
        changed += same != 0xffff;
#endif
        changed += low != value;
        rounds++;
    }
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    printf("changed %lu, wrong in a frame %d\n", changed, wrong);
    return 0;
}
