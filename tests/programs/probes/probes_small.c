/* what: calls small functions so many times each: of one and two bytes, side by side, recursive, leaving by jumps, with a jump table
 * build: -O2 -fno-inline -rdynamic
 */
#include <stdio.h>
#include <stdlib.h>

__asm__(".text\n"
        ".macro function name\n"
        ".globl \\name\n"
        ".type \\name, @function\n"
        "\\name:\n"
        ".endm\n"
        ".macro end name\n"
        ".size \\name, . - \\name\n"
        ".endm\n"
        ".balign 16\n"
        "function one_first\nret\nend one_first\n"
        "function one_second\nret\nend one_second\n"
        "function one_third\nret\nend one_third\n"
        "function two_first\nnop\nret\nend two_first\n"
        "function two_second\njmp two_rest\nend two_second\n"
        "function two_rest\nnop\nret\nend two_rest\n"
        ".balign 16\n"
        /* Adds its arguments, by way of the red zone. */
        "function leaf_red\nmov %rdi, -8(%rsp)\nmov %rsi, -120(%rsp)\nmov -8(%rsp), %rax\nadd -120(%rsp), %rax\nret\nend leaf_red\n"
        /* Leaves by a branch where its argument is odd, and by a return otherwise. */
        "function may_leave\nmov %rdi, %rax\ntest $1, %dil\njnz add_one\nret\nend may_leave\n"
        ".balign 16\n"
        "function add_one\nlea 1(%rdi), %rax\nret\nend add_one\n"
        ".balign 16\n"
        /* A loop whose second instruction is branched to: within what a jump at its beginning would replace. */
        "function loops\nxor %eax, %eax\n1: add $2, %rax\ndec %rdi\njnz 1b\nret\nend loops\n");

void one_first(void), one_second(void), one_third(void), two_first(void), two_second(void);
long leaf_red(long, long), may_leave(long), add_one(long), loops(long);

__attribute__((noipa)) long recursive(long n) { return n < 2 ? n : recursive(n - 1) + recursive(n - 2); }

__attribute__((noipa)) long chosen(long n) {
    switch (n & 7) {
    case 0: return add_one(n);
    case 1: return n * 3;
    case 2: return leaf_red(n, n);
    case 3: puts("three"); return 0;
    case 4: return n ^ 0x55;
    case 5: return may_leave(n);
    case 6: return loops(n);
    default: return -n;
    }
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 8, sum = 0;
    for (long at = 0; at < count; at++) {
        one_first();
        one_second();
        one_third();
        two_first();
        two_second();
        sum = sum * 31 + leaf_red(at, 7);
        sum = sum * 31 + may_leave(at);
        sum = sum * 31 + loops(at + 1);
        sum = sum * 31 + chosen(at);
    }
    printf("%ld %ld\n", sum, recursive(10));
    return 0;
}
