/* what: code on the stack and in the heap: trampolines of nested functions, code in a frame that is used again, code freed and reused
 * build: -O1 -z execstack -fno-stack-protector -Wno-trampolines
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int apply(int (*function)(int), int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += function(i);
    return sum;
}

/* A nested function whose address is taken: gcc puts a trampoline on the stack. */
static __attribute__((noinline)) int nested(int factor, int depth)
{
    int calls = 0;
    int inner(int x)
    {
        calls++;
        return x * factor + (depth > 0 && x == 2 ? nested(factor + 1, depth - 1) : 0);
    }
    int result = apply(inner, 5);
    return result + 1000 * calls;
}

static __attribute__((noinline)) unsigned in_frame(unsigned value)
{
    unsigned char code[16];
    code[0] = 0xb8;
    memcpy(code + 1, &value, 4);
    code[5] = 0xc3;
    __asm__ volatile("" ::: "memory");
    return ((unsigned (*)(void))code)();
}

static unsigned in_heap(unsigned value)
{
    unsigned char *code = malloc(64);
    mprotect((void *)((uintptr_t)code & ~4095ul), 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
    code[0] = 0xb8;
    memcpy(code + 1, &value, 4);
    code[5] = 0xc3;
    unsigned result = ((unsigned (*)(void))code)();
    free(code);
    return result;
}

int main(void)
{
    for (int i = 0; i < 4; i++)
        printf("nested %d\n", nested(i, i));
    unsigned sum = 0;
    for (unsigned i = 0; i < 60; i++)
        sum = sum * 31 + in_frame(i) + in_heap(i * 7);
    printf("sum %u\n", sum);
    return 0;
}
