/* what: vector registers, their control register and the x87 stack keep their values across branches, calls and system calls
 * build: -O1 -mno-avx
 * also: avx512 -O1 -DWITH_AVX512
 * traits: oracle:avx512
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

static int supported(void)
{
#ifdef WITH_AVX512
    return __builtin_cpu_supports("avx512f");
#else
    return 1;
#endif
}

static __attribute__((noinline, used)) void callee(void) { __asm__ volatile("nop"); }

static void (*volatile pointer)(void) = callee;

/* Everything that can be done between two looks at the state, without the compiler touching a vector register. */
#define BRANCHES                                                                                                       \
    "call callee\n call *pointer(%%rip)\n jmp 1f\n nop\n 1: lea 2f(%%rip), %%rax\n jmp *%%rax\n nop\n 2: push %%rax\n"  \
    "lea 3f(%%rip), %%rax\n mov %%rax, (%%rsp)\n ret\n 3: mov $39, %%eax\n syscall\n mov $1000, %%ecx\n 4: loop 4b\n"   \
    "cmp %%eax, %%eax\n je 5f\n ud2\n 5:\n"
#define CLOBBERS "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc"

static uint8_t before[32][64], after[32][64];

static void vectors(void)
{
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 64; j++)
            before[i][j] = (uint8_t)(i * 64 + j * 7 + 3);
#ifdef WITH_AVX512
    uint64_t masks[8], masks_after[8];
    for (int i = 0; i < 8; i++)
        masks[i] = 0x0123456789abcdefull * (unsigned)(i + 1);
#define LOAD(n) "vmovdqu64 " #n "*64(%[before]), %%zmm" #n "\n"
#define STORE(n) "vmovdqu64 %%zmm" #n ", " #n "*64(%[after])\n"
#define ALL(X)                                                                                                         \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19)      \
    X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)
#define LOADMASK(n) "kmovw " #n "*8(%[masks]), %%k" #n "\n"
#define STOREMASK(n) "kmovw %%k" #n ", " #n "*8(%[masks_after])\n"
#define MASKS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
    memset(masks_after, 0, sizeof masks_after);
    __asm__ volatile("sub $128, %%rsp\n" ALL(LOAD) MASKS(LOADMASK) BRANCHES ALL(STORE) MASKS(STOREMASK) "add $128, %%rsp\n"
                     :
                     : [before] "r"(before), [after] "r"(after), [masks] "r"(masks), [masks_after] "r"(masks_after)
                     : CLOBBERS, "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    for (int i = 1; i < 8; i++)
        if ((uint16_t)masks[i] != (uint16_t)masks_after[i])
            printf("mask %d changed\n", i);
    int bytes = 64, registers = 32;
#else
#define LOAD(n) "movdqu " #n "*64(%[before]), %%xmm" #n "\n"
#define STORE(n) "movdqu %%xmm" #n ", " #n "*64(%[after])\n"
#define ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
    __asm__ volatile("sub $128, %%rsp\n" ALL(LOAD) BRANCHES ALL(STORE) "add $128, %%rsp\n"
                     :
                     : [before] "r"(before), [after] "r"(after)
                     : CLOBBERS, "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    int bytes = 16, registers = 16;
#endif
    for (int i = 0; i < registers; i++)
        if (memcmp(before[i], after[i], (size_t)bytes) != 0)
            printf("register %d changed\n", i);
    printf("%d registers of %d bytes\n", registers, bytes);
}

static void control(void)
{
    static uint32_t mxcsr = 0xff80, mxcsr_after = 0; /* round to zero, flush to zero, all masked */
    static uint16_t word = 0x0f7f, word_after = 0;   /* round to zero, extended precision */
    long double values[4];
    __asm__ volatile("sub $128, %%rsp\n ldmxcsr %[mxcsr]\n fldcw %[word]\n fld1\n fldpi\n fldl2e\n fldz\n" BRANCHES
                     "fstpt 0(%[values])\n fstpt 16(%[values])\n fstpt 32(%[values])\n fstpt 48(%[values])\n"
                     "stmxcsr %[mxcsr_after]\n fnstcw %[word_after]\n add $128, %%rsp\n"
                     : [mxcsr_after] "+m"(mxcsr_after), [word_after] "+m"(word_after)
                     : [mxcsr] "m"(mxcsr), [word] "m"(word), [values] "r"(values)
                     : CLOBBERS);
    uint32_t usual = 0x1f80;
    __asm__ volatile("ldmxcsr %0\n fninit" ::"m"(usual));
    printf("mxcsr %x, control word %x, x87 %.18Lf %.18Lf %.18Lf %.18Lf\n", mxcsr_after, word_after, values[0],
           values[1], values[2], values[3]);
}

int main(void)
{
    (void)pointer;
    if (!supported()) {
        puts("the processor has no AVX-512: nothing tested");
        return 0;
    }
    for (int i = 0; i < 3; i++)
        vectors();
    control();
    return 0;
}
