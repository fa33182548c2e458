/* what: returns, plain and dropping arguments, whose return address lies in memory that may only be read
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

/* rdi: a stack in memory that can't be written, which holds the address of `arrived`. */
void return_there(void *stack);
void drop_there(void *stack);
__asm__(".text\n"
        ".type return_there, @function\nreturn_there:\n mov %rsp, %rsi\n mov %rdi, %rsp\n ret\n"
        ".type drop_there, @function\ndrop_there:\n mov %rsp, %rsi\n mov %rdi, %rsp\n ret $8\n"
        ".globl arrived\narrived: mov %rsi, %rsp\n ret\n");
extern const char arrived[];

int main(void)
{
    uintptr_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 100; i++)
        page[i] = (uintptr_t)arrived;
    mprotect(page, 4096, PROT_READ);
    for (int i = 0; i < 20; i++) {
        return_there(page + i);
        drop_there(page + 20 + i);
    }
    puts("returned");
    return 0;
}
