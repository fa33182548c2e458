/* what: leaf functions that keep everything in the red zone, called and jumped to in every way
 * build: -O1 -fno-stack-protector
 * traits: oracle
 */
#include <stdio.h>

/* All 128 bytes below the stack pointer are written, branches happen, all are read back. */
__attribute__((naked)) static unsigned long leaf(unsigned long seed)
{
    __asm__(".intel_syntax noprefix\n"
            "    mov rax, rdi\n"
            "    mov ecx, 16\n"
            "1:  imul rax, rax, 31\n"
            "    add rax, 7\n"
            "    mov rdx, rcx\n"
            "    neg rdx\n"
            "    mov [rsp + rdx * 8], rax\n"
            "    dec ecx\n"
            "    jnz 1b\n"
            "    lea rdx, [rip + 2f]\n"
            "    test edi, 1\n"
            "    jz 3f\n"
            "    jmp rdx\n"
            "3:  jmp 2f\n"
            "    nop\n"
            "2:  xor eax, eax\n"
            "    mov ecx, 16\n"
            "4:  mov rdx, rcx\n"
            "    neg rdx\n"
            "    rol rax, 5\n"
            "    add rax, [rsp + rdx * 8]\n"
            "    loop 4b\n"
            "    ret\n"
            ".att_syntax\n");
}

int main(void)
{
    unsigned long (*volatile indirect)(unsigned long) = leaf;
    unsigned long sum = 0;
    for (unsigned long i = 0; i < 50; i++)
        sum += leaf(i) ^ indirect(i + 1);
    printf("%lx\n", sum);
    return 0;
}
