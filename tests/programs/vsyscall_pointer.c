/* what: vsyscalls with bad pointers, and without a stack to return from, raise SIGSEGV, which a handler may return from
 * build: -O1
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

static sigjmp_buf back;

static void on_fault(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    printf("signal %d code %d pc %#llx argument %lld\n", number, info->si_code, registers[REG_RIP],
           registers[REG_RDI] & 4095);
    siglongjmp(back, 1);
}

static void call(unsigned long page_offset, unsigned long pointer)
{
    long (*page)(void *, void *) = (long (*)(void *, void *))(0xffffffffff600000ul + page_offset);
    if (sigsetjmp(back, 1) == 0)
        printf("came back: %d\n", page((void *)pointer, NULL) != 0);
}

int main(void)
{
    static stack_t stack = {.ss_size = 65536};
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack.ss_sp = malloc(stack.ss_size);
    sigaltstack(&stack, NULL);
    sigaction(SIGSEGV, &action, NULL);
    void *constant = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 3; i++) {
        call(0x400, 8);
        call(0x000, 16);
        call(0x800, 24);
        printf("%d: constant memory\n", i);
        if (sigsetjmp(back, 1) == 0 && ((long (*)(void *))0xffffffffff600400ul)(constant) != 0)
            return 1;
        call(0x400, 0);
    }
    if (sigsetjmp(back, 1) == 0)
        __asm__ volatile("mov $8, %%rsp\n xor %%edi, %%edi\n jmp *%0" : : "a"(0xffffffffff600400ul));
    return 0;
}
