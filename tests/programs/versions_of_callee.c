/* what: two places call code that is hot, then rewritten; each version has its own edges from both
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include "note.h"

/* Many calls without a loop: they bring the runtime to lay hot code out anew, and are not hot themselves. */
__asm__(".text\n nothing: xor %eax, %eax\n ret\n"
        "many_calls: .rept 1200\n call nothing\n .endr\n ret\n"
        "more_calls: .rept 1200\n call nothing\n .endr\n ret\n"
        "first_place: xor %eax, %eax\n sub $8, %rsp\n call *%rdi\n add $8, %rsp\n ret\n"
        "second_place: xor %eax, %eax\n sub $8, %rsp\n call *%rdi\n nop\n add $8, %rsp\n ret\n");
extern void many_calls(void), more_calls(void);
extern int first_place(void *), second_place(void *), nothing(void);

int main(void)
{
    static const unsigned char first[] = {0xb8, 1, 0, 0, 0, 0xc3}, second[] = {0xb8, 2, 0, 0, 0, 0x90, 0xc3};
    unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int sum = 0;
    memcpy(page, first, sizeof first);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    for (int i = 0; i < 100; i++)
        sum += first_place(nothing) + second_place(nothing);
    many_calls();
    for (int i = 0; i < 100; i++)
        sum += first_place(page) + (i < 60 ? second_place(page) : 0);
    more_calls();
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    memcpy(page, second, sizeof second);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    for (int i = 0; i < 70; i++)
        sum += (i < 50 ? first_place(page) : 0) + second_place(page);
    note("sum", sum);
    return 0;
}
