/* what: returns, plain and dropping arguments, whose return address lies in memory that may only be read, or is none
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "note.h"

static sigjmp_buf back;
static char stack[65536];

/* rdi: a stack in memory that can't be written, with places to return to. */
void return_there(void *stack);
void drop_there(void *stack);
void call_and_return(void *slot, void *page);
__asm__(".text\n"
        ".type return_there, @function\nreturn_there:\n mov %rsp, %rsi\n mov %rdi, %rsp\n ret\n"
        ".type drop_there, @function\ndrop_there:\n mov %rsp, %rsi\n mov %rdi, %rsp\n ret $8\n"
        ".globl arrived\narrived: mov %rsi, %rsp\n ret\n"
        /* A real call, whose return address is in the read-only page already. */
        ".type call_and_return, @function\ncall_and_return:\n mov %rsp, %rsi\n call 1f\n"
        ".globl called_back\ncalled_back: mov %rsi, %rsp\n ret\n"
        "1: mov %rdi, %rsp\n ret\n");
extern const char arrived[], called_back[];

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("  code", info->si_code);
    note("  address", (long)info->si_addr);
    note("  pc", registers[REG_RIP]);
    note("  error", registers[REG_ERR]);
    siglongjmp(back, 1);
}

int main(void)
{
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    uintptr_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 100; i++) {
        page[i] = (uintptr_t)arrived;
        page[100 + i] = (uintptr_t)called_back;
    }
    mprotect(page, 4096, PROT_READ);
    for (int i = 0; i < 20; i++) {
        return_there(page + i);
        drop_there(page + 20 + i);
        call_and_return(page + 110 + i, page);
    }
    note("returned", 1);
    for (int i = 0; i < 2; i++) {
        if (sigsetjmp(back, 1) == 0)
            return_there(page + 300);
        if (sigsetjmp(back, 1) == 0)
            drop_there(page + 300);
    }
    return 0;
}
