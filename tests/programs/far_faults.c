/* what: far branches that fault: selectors that are none, the kernel's or of data, targets that are no addresses, stacks that can't be read
 * build: -O1 -fno-stack-protector -fno-pie -no-pie
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>
#include "note.h"

extern char far_return[], far_jump[], interrupt_return[];
static sigjmp_buf back;
static struct { unsigned offset; unsigned short selector; } __attribute__((packed)) place;

static void on_fault(int number, siginfo_t *info, void *opaque)
{
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    uintptr_t pc = (uintptr_t)registers[REG_RIP];
    note("signal", number);
    note("  code", info->si_code);
    note("  at the return", pc == (uintptr_t)far_return);
    note("  at the jump", pc == (uintptr_t)far_jump);
    note("  at iretq", pc == (uintptr_t)interrupt_return);
    note("  error", registers[REG_ERR]);
    note("  trap", registers[REG_TRAPNO]);
    note("  cs", registers[REG_CSGSFS] & 0xffff);
    note("  carry", registers[REG_EFL] & 1);
    siglongjmp(back, 1);
}

/* Returns, jumps or returns from an interrupt to `target`; what comes back is 1. */
long try_return(uint64_t target, uint64_t selector);
long try_jump(void *pointer);
long try_iretq(uint64_t target, uint64_t code, uint64_t stack);
long try_without_stack(uint64_t stack);
__asm__(".globl far_return, far_jump, interrupt_return, try_return, try_jump, try_iretq, try_without_stack, there\n"
        "try_return: push %rsi\n push %rdi\n stc\n far_return: lretq\n"
        "try_jump: stc\n far_jump: ljmp *(%rdi)\n"
        "try_iretq: mov %rsp, %rax\n push %rdx\n push %rax\n push $0x203\n push %rsi\n push %rdi\n stc\n"
        "interrupt_return: iretq\n"
        "try_without_stack: mov %rdi, %rsp\n stc\n jmp far_return\n"
        "there: mov $1, %eax\n ret\n");
extern char there[];

#define TRY(what, call)                       \
    do {                                      \
        puts(what);                           \
        fflush(stdout);                       \
        if (sigsetjmp(back, 1) == 0)          \
            printf("came back %ld\n", call);  \
    } while (0)

static long jump(unsigned short selector)
{
    place.offset = (unsigned)(uintptr_t)there;
    place.selector = selector;
    return try_jump(&place);
}

int main(void)
{
    static char stack[65536];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    const int faults[] = {SIGSEGV, SIGBUS, SIGILL};
    for (int i = 0; i < 3; i++)
        sigaction(faults[i], &action, NULL);
    const uint64_t target = (uintptr_t)there, nowhere = 1ul << 60;
    for (int round = 0; round < 2; round++) {
        TRY("return", try_return(target, 0x33));
        TRY("return to the kernel's code", try_return(target, 0x10));
        TRY("return to no code", try_return(target, 0));
        TRY("return to data", try_return(target, 0x2b));
        TRY("return to no such segment", try_return(target, 0xfff7));
        TRY("return to no address", try_return(nowhere, 0x33));
        TRY("return without a stack", try_without_stack(4096));
        TRY("jump", jump(0x33));
        TRY("jump, asking for less", jump(0x30));
        TRY("jump to the kernel's code", jump(0x10));
        TRY("jump to data", jump(0x2b));
        TRY("jump by no address", try_jump((void *)8));
        TRY("iretq", try_iretq(target, 0x33, 0x2b));
        TRY("iretq to the kernel's code", try_iretq(target, 0x10, 0x2b));
        TRY("iretq to no stack", try_iretq(target, 0x33, 0));
        TRY("iretq to code for a stack", try_iretq(target, 0x33, 0x33));
        TRY("iretq to no address", try_iretq(nowhere, 0x33, 0x2b));
    }
    return 0;
}
