/* what: holds a value in every register, gs base and control words included, over and over, until SIGTERM
 * build: -O1
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile sig_atomic_t is_over;
static unsigned long own[2] = {0x0123456789abcdef, 0};

static void end(int signal)
{
    (void)signal;
    is_over = 1;
}

/* Each register is its number times 0x0101; the sum is made after a while of doing nothing. */
static unsigned long hold(void)
{
    unsigned long sum;
    __asm__ volatile(
        "mov $0x101, %%rcx\n mov $0x202, %%rdx\n mov $0x303, %%rbx\n mov $0x606, %%rsi\n mov $0x707, %%rdi\n"
        "mov $0x808, %%r8\n mov $0x909, %%r9\n mov $0xa0a, %%r10\n mov $0xb0b, %%r11\n mov $0xc0c, %%r12\n"
        "mov $0xd0d, %%r13\n mov $0xe0e, %%r14\n mov $0xf0f, %%r15\n movq %%r8, %%xmm0\n movq %%r9, %%xmm8\n"
        "movq %%r10, %%xmm15\n fld1\n fldpi\n"
        "mov $200000, %%eax\n 1: dec %%eax\n jnz 1b\n"
        "add %%rcx, %%rax\n add %%rdx, %%rax\n add %%rbx, %%rax\n add %%rsi, %%rax\n add %%rdi, %%rax\n"
        "add %%r8, %%rax\n add %%r9, %%rax\n add %%r10, %%rax\n add %%r11, %%rax\n add %%r12, %%rax\n"
        "add %%r13, %%rax\n add %%r14, %%rax\n add %%r15, %%rax\n"
        "movq %%xmm0, %%rcx\n add %%rcx, %%rax\n movq %%xmm8, %%rcx\n add %%rcx, %%rax\n"
        "movq %%xmm15, %%rcx\n add %%rcx, %%rax\n fstp %%st(0)\n fstp %%st(0)\n"
        : "=a"(sum)
        :
        : "rcx", "rdx", "rbx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm8", "xmm15",
          "cc", "st", "st(1)");
    return sum;
}

/* Whether the processor names, or doesn't say, the last x87 instruction after a while. */
static int holds_last_x87(void)
{
    unsigned environment[7];
    unsigned long last;
    __asm__ volatile(
        "lea 1f(%%rip), %1\n 1: fld1\n mov $200000, %%eax\n 2: dec %%eax\n jnz 2b\n"
        "fnstenv %0\n fldenv %0\n fstp %%st(0)\n"
        : "=m"(environment), "=&r"(last)
        :
        : "rax", "cc", "st");
    return environment[3] == 0 || environment[3] == (unsigned)last;
}

int main(void)
{
    const unsigned long wanted = 0x101 * (1 + 2 + 3 + 6 + 7 + 8 + 9 + 10 + 11 + 12 + 13 + 14 + 15 + 8 + 9 + 10);
    unsigned rounding = 0x7f80, seen;
    unsigned short control = 0x0e7f, seen_control;
    unsigned long from_gs;
    int n_bad = 0;
    signal(SIGTERM, end);
    syscall(SYS_arch_prctl, ARCH_SET_GS, own);
    puts("ready");
    fflush(stdout);
    __asm__ volatile("ldmxcsr %0\n fldcw %1" : : "m"(rounding), "m"(control));
    while (!is_over) {
        n_bad += hold() != wanted;
        n_bad += !holds_last_x87();
        __asm__ volatile("stmxcsr %0\n fnstcw %1\n mov %%gs:0, %2" : "=m"(seen), "=m"(seen_control), "=r"(from_gs));
        n_bad += (seen & ~0x3fu) != rounding || seen_control != control || from_gs != own[0];
    }
    puts(n_bad ? "bad" : "good");
    return n_bad != 0;
}
