/* what: AVX-512 used only late: after signals, system calls, threads and many branches; upper halves kept, then clean again
 * build: -O1 -pthread
 * needs: avx512f avx512vl
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t n;

static void handler(int number)
{
    (void)number;
    n++;
    __asm__ volatile("pxor %%xmm1, %%xmm1\n pcmpeqd %%xmm7, %%xmm7" ::: "xmm1", "xmm7");
}

static __attribute__((noinline)) unsigned mix(unsigned x) { return x % 3 ? x * 5 + 1 : x / 3; }

static unsigned early(void)
{
    unsigned x = 1;
    for (int i = 0; i < 20000; i++)
        x = mix(x + (unsigned)i);
    return x;
}

static void late(const char *who)
{
    static const uint64_t values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint64_t after[8], other[8];
    int pid = getpid();
    __asm__ volatile("vmovdqu64 %[values], %%zmm1\n vpaddq %%zmm1, %%zmm1, %%zmm17\n vmovdqa64 %%zmm17, %%zmm31\n mov $10000, %%ecx\n"
                     "1: mov $39, %%eax\n test $1, %%ecx\n jz 2f\n nop\n 2: dec %%ecx\n jnz 1b\n"
                     "mov $62, %%eax\n mov %[pid], %%edi\n mov $10, %%esi\n syscall\n"
                     "vpaddq %%zmm31, %%zmm1, %%zmm1\n vmovdqu64 %%zmm1, %[after]\n vmovdqu64 %%zmm17, %[other]\n vzeroupper"
                     : [after] "=m"(after), [other] "=m"(other)
                     : [values] "m"(values), [pid] "r"(pid)
                     : "rax", "rcx", "rdi", "rsi", "r11", "xmm1", "memory", "cc");
    printf("%s: %lu %lu %lu %lu\n", who, after[0], after[7], other[0], other[7]);
}

static void *thread(void *nothing)
{
    printf("early %u\n", early());
    late("thread");
    return nothing;
}

int main(void)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 10; i++)
        raise(SIGUSR1);
    printf("early %u, %d signals\n", early(), n);
    late("main");
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    for (int i = 0; i < 20; i++)
        raise(SIGUSR1);
    late("main again");
    printf("%d signals\n", n);
    return 0;
}
