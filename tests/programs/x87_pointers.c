/* what: the last x87 instruction's address and operand, as fnstenv, fnsave, fxsave, xsave and a handler's frame tell them
 * build: -O1 -fno-pie -no-pie
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

extern const char at_load[], at_add[], at_sine[], at_division[], at_fault[], at_local[];
static __thread unsigned char local_area[512];
static unsigned char area[4096] __attribute__((aligned(64)));
static double operand = 1.5;

static void show(const char *what, uint32_t pc, uint32_t data)
{
    const char *place = pc == (uint32_t)(uintptr_t)at_load ? "the load" : pc == (uint32_t)(uintptr_t)at_add ? "the addition"
                        : pc == (uint32_t)(uintptr_t)at_sine ? "the sine" : pc == 0 ? "none" : "elsewhere";
    printf("%s: %s, operand %s\n", what, place, data == (uint32_t)(uintptr_t)&operand ? "right" : data == 0 ? "none" : "other");
}

static uint32_t word_at(int offset)
{
    uint32_t word;
    memcpy(&word, area + offset, 4);
    return word;
}

/* All exceptions are masked but that of a division by zero. */
static const unsigned short unmasked = 0x37b;

/* Of a division by zero that is not masked; stored before anything has waited for it. */
static void divide(const char *what, int is_xsave)
{
    memset(area, 0, sizeof area);
    __asm__ volatile("fninit\n fldcw %2\n fld1\n fldz\n at_division: fdivrp\n test %1, %1\n jnz 1f\n fxsave64 %0\n jmp 2f\n"
                     "1: mov $1, %%eax\n xor %%edx, %%edx\n xsave64 %0\n 2: fnclex\n fninit"
                     : "=m"(area) : "r"(is_xsave), "m"(unmasked) : "memory", "eax", "edx");
    uint64_t pc;
    memcpy(&pc, area + 8, 8);
    printf("%s: %s\n", what, pc == (uintptr_t)at_division ? "the division" : pc == 0 ? "none" : "elsewhere");
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    uint64_t pc = ((ucontext_t *)context)->uc_mcontext.fpregs->rip;
    printf("signal %d code %d: %s\n", number, info->si_code, pc == (uintptr_t)at_fault ? "the division" : "elsewhere");
    ((ucontext_t *)context)->uc_mcontext.fpregs->cwd = 0x37f;
    ((ucontext_t *)context)->uc_mcontext.fpregs->swd = 0;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGFPE, &action, NULL);
    for (int i = 0; i < 3; i++) {
        __asm__ volatile("fninit\n .globl at_load\n at_load: fldl %1\n fnstenv %0\n fldenv %0\n fstp %%st(0)" : "=m"(area) : "m"(operand) : "memory");
        show("fnstenv", word_at(12), word_at(20));
        __asm__ volatile("fninit\n fld1\n .globl at_add\n at_add: faddl %1\n fnsave %0" : "=m"(area) : "m"(operand) : "memory");
        show("fnsave", word_at(12), word_at(20));
        __asm__ volatile("fninit\n fld1\n .globl at_sine\n at_sine: fsin\n fxsave %0\n fninit" : "=m"(area) : : "memory");
        show("fxsave", word_at(8), 0);
        __asm__ volatile("fninit\n fld1\n jmp at_sine2\n at_sine2: fcos\n mov $1, %%eax\n xor %%edx, %%edx\n xsave %0\n fninit" : "=m"(area) : : "memory", "eax", "edx");
        printf("xsave: %s\n", word_at(8) == 0 ? "none" : "some address");
        __asm__ volatile("fninit\n fnstenv %0" : "=m"(area) : : "memory");
        show("after fninit", word_at(12), word_at(20));
        divide("fxsave64", 0);
        divide("xsave64", 1);
        __asm__ volatile("fninit\n fldcw %0\n fld1\n fldz\n at_fault: fdivrp\n fwait\n fninit" : : "m"(unmasked));
        __asm__ volatile("fninit\n fld1\n .globl at_local\n at_local: fldz\n fnstenv %0\n fninit" : "=m"(local_area) : : "memory");
        memcpy(area, local_area, 28);
        printf("in thread-local memory: %s\n", word_at(12) == (uint32_t)(uintptr_t)at_local ? "right" : "wrong");
    }
    return 0;
}
