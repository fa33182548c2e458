/* what: jumps, calls, returns, returns that drop arguments and signal returns to what is no address, one of the kernel's, or the last one of all
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include "note.h"

/* No address, the kernel's, the very last ones, and those around the end of what a program may map. */
static const unsigned long targets[] = {
    0x1234567800000000, 0xffff900000001000, 0xffffffffffffffff, 0xfffffffffffffffe, 0xffffffff00000000,
    0x800000000000,     0x7fffffffffff,     0x7ffffffff000,     0xffff7fffffffffff,
};

static sigjmp_buf back;
extern const char at_jump[], at_call[], at_return[], at_drop[];
uintptr_t stack_before;
static long target;
static const char *expected;

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("code", info->si_code);
    note("address", (long)info->si_addr);
    note("at the branch", (uintptr_t)registers[REG_RIP] == (uintptr_t)expected);
    note("at the target", registers[REG_RIP] == target);
    note("stack", (long)((uintptr_t)registers[REG_RSP] - stack_before));
    note("trap", registers[REG_TRAPNO]);
    note("error", registers[REG_ERR]);
    note("rdi", registers[REG_RDI]);
    siglongjmp(back, 1);
}

/* rdi: the target. The stack pointer before the branch is kept. */
void by_jump(uintptr_t target);
void by_call(uintptr_t target);
void by_return(uintptr_t target);
void by_drop(uintptr_t target);
__asm__(".text\n"
        ".type by_jump, @function\nby_jump:\n mov %rsp, stack_before(%rip)\n"
        ".globl at_jump\nat_jump: jmp *%rdi\n"
        ".type by_call, @function\nby_call:\n mov %rsp, stack_before(%rip)\n"
        ".globl at_call\nat_call: call *%rdi\n"
        ".type by_return, @function\nby_return:\n push %rdi\n mov %rsp, stack_before(%rip)\n"
        ".globl at_return\nat_return: ret\n"
        ".type by_drop, @function\nby_drop:\n push %rdi\n mov %rsp, stack_before(%rip)\n"
        ".globl at_drop\nat_drop: ret $24\n");

static void return_nowhere(int number, siginfo_t *info, void *opaque)
{
    (void)number, (void)info;
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    registers[REG_RIP] = target;
    registers[REG_RDI] = 99;
    stack_before = (uintptr_t)registers[REG_RSP];
}

static void go(const char *what, void (*how)(uintptr_t), const char *where)
{
    note(what, 0);
    expected = where;
    if (sigsetjmp(back, 1) == 0)
        how((uintptr_t)target);
}

static void by_signal(uintptr_t where)
{
    (void)where;
    raise(SIGUSR1);
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = handler;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    action.sa_sigaction = return_nowhere;
    sigaction(SIGUSR1, &action, NULL);
    enum { N_TARGETS = sizeof targets / sizeof *targets };
    for (int i = 0; i < 3 * N_TARGETS; i++) {
        target = (long)targets[i % N_TARGETS];
        go("jump", by_jump, at_jump);
        go("call", by_call, at_call);
        go("return", by_return, at_return);
        go("return that drops", by_drop, at_drop);
        go("signal return", by_signal, NULL);
    }
    return 0;
}
