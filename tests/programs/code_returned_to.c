/* what: a return that goes to code without a call, again and again, while that code is replaced by other code in its place
 * build: -O1 -static
 * traits: oracle-instructions
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Goes to `code` by a return; what is there comes back by a jump to rdx, with a number in eax. */
int go_to(void *code);
__asm__("go_to:\n lea 1f(%rip), %rdx\n push %rdi\n ret\n1: ret\n");

static void place(unsigned char *code, int number)
{
    static const unsigned char answer[] = {0xb8, 0, 0, 0, 0, 0xff, 0xe2};     /* mov eax, number; jmp rdx */
    mprotect(code, 4096, PROT_READ | PROT_WRITE);
    memcpy(code, answer, sizeof answer);
    memcpy(code + 1, &number, sizeof number);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
}

int main(void)
{
    unsigned char *code = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long sum = 0;
    for (int i = 0; i < 3; i++)
        place(code + 4096 * i, i);
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < 24; i++)
            sum = sum * 3 + go_to(code + 4096 * (i % 3));
        place(code + 4096 * (round % 3), round + 10);
    }
    printf("%ld\n", sum);
    return 0;
}
