/* what: code in the middle of reserved memory, nothing free within reach: operands relative to rip, calls in and out, changed while it runs
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define GIGABYTE (1ul << 30)
#define RESERVED (16 * GIGABYTE)

typedef long (*callee)(long);
typedef long (*function)(long, callee);

/* Code that can lie anywhere, with its data behind it. */
extern const unsigned char far_code[], far_data[], far_end[];
__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        ".globl far_code, far_data, far_end\n"
        "far_code:\n"
        " push %rbx\n"
        " push %rsi\n"
        " sub $8, %rsp\n"
        " mov %rdi, %rbx\n"
        " cmp $5, %rdi\n"
        " lea value(%rip), %rax\n"              /* flags and registers are live over it */
        " jl 1f\n"
        " add value(%rip), %rdi\n"
        " incq count(%rip)\n"
        "1: movsd real(%rip), %xmm0\n"
        " addsd real(%rip), %xmm0\n"
        " movsd %xmm0, sum(%rip)\n"
        " cvttsd2si sum(%rip), %rcx\n"
        " add %rcx, %rdi\n"
        " pushq value(%rip)\n"
        " popq copy(%rip)\n"
        " cmpl $3, copy(%rip)\n"
        " setz %cl\n"
        " movzx %cl, %ecx\n"
        " add %rcx, %rdi\n"
        " lea inner(%rip), %rax\n"
        " mov %rax, pointer(%rip)\n"
        " call *pointer(%rip)\n"                /* an indirect call by an operand relative to rip */
        " call inner\n"
        " mov %rbx, %rcx\n"
        " and $3, %ecx\n"
        " lea table(%rip), %rdx\n"
        " movslq (%rdx,%rcx,4), %rcx\n"
        " add %rdx, %rcx\n"
        " jmp *%rcx\n"
        "2: add $10, %rdi\n"
        "3: add $100, %rdi\n"
        "4: add $1000, %rdi\n"
        "5: mov 8(%rsp), %rsi\n"
        " mov %rsi, %rax\n"
        " call *%rax\n"                         /* out of the reserved memory */
        " mov $8, %ecx\n"
        "6: add count(%rip), %rax\n"
        " loop 6b\n"
        " add $8, %rsp\n"
        " pop %rsi\n"
        " pop %rbx\n"
        " ret\n"
        "inner: xor value(%rip), %rdi\n"
        " lea 1(%rdi), %rdi\n"
        " ret\n"
        ".balign 8\n"
        "far_data:\n"
        "value: .quad 3\n"
        "count: .quad 0\n"
        "copy: .quad 0\n"
        "pointer: .quad 0\n"
        "real: .double 2.5\n"
        "sum: .double 0\n"
        "table: .long 2b-table, 3b-table, 4b-table, 5b-table\n"
        "far_end:\n"
        ".popsection\n");

__attribute__((noinline)) static long outside(long x)
{
    return x * 7 % 1000003;
}

static function put(char *place, long value)
{
    memcpy(place, far_code, (size_t)(far_end - far_code));
    memcpy(place + (far_data - far_code), &value, sizeof value);
    return (function)(uintptr_t)place;
}

static long run(function code, long rounds)
{
    long sum = 0;
    for (long i = 0; i < rounds; i++)
        sum = sum * 31 % 1000003 + code(i % 17, outside);
    return sum;
}

int main(void)
{
    char *reserved = mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        return 1;
    char *middle = reserved + RESERVED / 2;
    mprotect(middle, 16 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
    /* Two pages: code whose page is written all the time, and code that is called from it often. */
    function first = put(middle + 1, 3), second = put(middle + 8 * 4096, 4);
    printf("written to %ld\n", run(first, 400));
    printf("beside it %ld\n", run(second, 400));
    for (int i = 0; i < 20; i++) {
        put(middle + 1, i);
        printf("%ld%c", run(first, 30), i % 5 == 4 ? '\n' : ' ');
    }
    /* Code that only a call can change. */
    char code[] = {(char)0x8d, 0x47, 0x01, (char)0xc3};                 /* lea eax, [rdi + 1]; ret */
    char *fixed = middle + 10 * 4096;
    for (int i = 0; i < 500; i++)
        memcpy(fixed + i * 8, code, sizeof code);
    mprotect(fixed, 4096, PROT_READ | PROT_EXEC);
    long sum = 0;
    for (int turn = 0; turn < 20; turn++)
        for (int i = 0; i < 500; i++)
            sum = ((function)(uintptr_t)(fixed + i * 8))(sum, NULL);
    printf("fixed %ld\n", sum);
    munmap(reserved, RESERVED);
    printf("gone\n");
    return 0;
}
