/* what: fxsave, fxrstor, xsave, xsavec, xsaveopt and xrstor by the program: layouts, masks, initial and changed components, faults
 * build: -O1
 * needs: xsave xsaveopt xsavec
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static unsigned char first[8192] __attribute__((aligned(64))), second[8192] __attribute__((aligned(64)));
static sigjmp_buf back;

static void handler(int number) { siglongjmp(back, number); }

static uint64_t header(const unsigned char *area, int index)
{
    uint64_t word;
    memcpy(&word, area + 512 + 8 * index, 8);
    return word;
}

static void fill(unsigned value)
{
    unsigned control = 0x1f80 | (value & 3) << 13;
    __asm__ volatile("ldmxcsr %0\n movd %1, %%xmm0\n pshufd $0, %%xmm0, %%xmm0\n movdqa %%xmm0, %%xmm15" ::"m"(control), "r"(value)
                     : "xmm0", "xmm15");
}

static unsigned value(void)
{
    unsigned result, control, usual = 0x1f80;
    __asm__ volatile("movd %%xmm15, %0\n stmxcsr %1\n ldmxcsr %2" : "=r"(result), "=m"(control) : "m"(usual));
    return result + (control & 0x6000);
}

static void try(const char *what, void (*operation)(void))
{
    int number = sigsetjmp(back, 1);
    if (number == 0) {
        operation();
        printf("%s: done\n", what);
    } else {
        printf("%s: signal %d\n", what, number);
    }
}

static void bad_mxcsr(void)
{
    memcpy(second, first, 4096);
    memset(second + 24, 0xff, 4);
    __asm__ volatile("fxrstor %0" ::"m"(second) : "xmm0", "xmm15");
}

static void not_aligned(void) { __asm__ volatile("fxsave %0" : "=m"(second[8])); }

static void reserved_header(void)
{
    memcpy(second, first, 4096);
    second[512 + 24] = 1;
    __asm__ volatile("xrstor %0" ::"m"(second), "a"(3), "d"(0) : "xmm0", "xmm15");
}

static void beyond(void) { __asm__ volatile("ldmxcsr %0" ::"m"((unsigned){0x10000})); }

int main(void)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = 0};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    for (unsigned i = 1; i < 4; i++) {
        unsigned one = i * 0x01010101, other = i * 0x10101010;
        fill(one);
        __asm__ volatile("fxsave64 %0" : "=m"(first));
        fill(other);
        __asm__ volatile("fxrstor64 %0" ::"m"(first) : "xmm0", "xmm15");
        printf("fxrstor %x\n", value());
        fill(one);
        memset(first, 0, sizeof first);
        __asm__ volatile("xsave64 %0" : "=m"(first) : "a"(3), "d"(0));
        fill(other);
        __asm__ volatile("xrstor64 %0" ::"m"(first), "a"(3), "d"(0) : "xmm0", "xmm15");
        printf("xrstor %x, bits %lx\n", value(), (unsigned long)header(first, 0) & ~1ul);
        fill(other);
        __asm__ volatile("xrstor64 %0" ::"m"(first), "a"(1), "d"(0) : "xmm0", "xmm15");
        printf("x87 only %x\n", value());
        fill(one);
        memset(second, 0, sizeof second);
        __asm__ volatile("xsavec64 %0" : "=m"(second) : "a"(2), "d"(0));
        fill(other);
        __asm__ volatile("xrstor64 %0" ::"m"(second), "a"(2), "d"(0) : "xmm0", "xmm15");
        printf("xsavec %x, bits %lx %lx\n", value(), (unsigned long)header(second, 0), (unsigned long)header(second, 1));
        fill(one);
        memset(second, 0, sizeof second);
        __asm__ volatile("xsaveopt64 %0" : "=m"(second) : "a"(2), "d"(0));
        printf("xsaveopt bits %lx\n", (unsigned long)header(second, 0));
        /* Initial state from a header without bits. */
        memset(first + 512, 0, 8);
        fill(other);
        __asm__ volatile("xrstor64 %0" ::"m"(first), "a"(2), "d"(0) : "xmm0", "xmm15");
        printf("initial %x\n", value());
        unsigned low, high;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        printf("components %d %u\n", (low & 3) == 3, high & 0x7fffffff);
        try("reserved bits of mxcsr in fxrstor", bad_mxcsr);
        try("fxsave to what is not aligned", not_aligned);
        try("reserved bits in the header", reserved_header);
        try("reserved bits in ldmxcsr", beyond);
    }
    return 0;
}
