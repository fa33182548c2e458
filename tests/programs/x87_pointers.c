/* what: the last x87 instruction's address, operand and opcode, as fnstenv, fnsave, fxsave and xsave tell them
 * build: -O1 -fno-pie -no-pie
 * differs: the processor notes where the copy of the instruction lies in the code cache
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

extern const char at_load[], at_add[], at_sine[];
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

int main(void)
{
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
    }
    return 0;
}
