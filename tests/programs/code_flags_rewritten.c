/* what: flags that code two jumps on overwrites, until it is rewritten by code that reads them
 * build: -O1 -fno-stack-protector
 * traits: oracle-instructions
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* cmp esi, esi; setz al; ret, then setz al; ret */
static const unsigned char overwrites[] = {0x39, 0xf6, 0x0f, 0x94, 0xc0, 0xc3};
static const unsigned char reads[] = {0x0f, 0x94, 0xc0, 0xc3};

__attribute__((aligned(4096), used)) static unsigned char code[4096];

/* Returns whether edi is 5, or true. */
int ask(int number);
__asm__(".text\n"
        ".globl ask\n"
        ".type ask, @function\n"
        "ask:\n"
        "    xor %eax, %eax\n"
        "    cmp $5, %edi\n"
        "    jmp between\n"
        "    .balign 64\n"
        "between:\n"
        "    jmp code\n");

int main(void)
{
    mprotect(code, sizeof code, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (int i = 0; i < 3; i++) {
        memcpy(code, overwrites, sizeof overwrites);
        for (int number = 3; number < 8; number++)
            printf("%d", ask(number));
        memcpy(code, reads, sizeof reads);
        for (int number = 3; number < 8; number++)
            printf("%d", ask(number));
        puts("");
    }
    return 0;
}
