/* Calls a function on stacks behind which nothing is mapped, or that are gone as soon as others look, whose rules for
   unwinding say that there is more; with alignment checks on, and backwards. Says for a line what it came to. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

long reached(long n);
long on_stack(char *top, long n);
long strangely(long n);

/* The rules of `on_stack` say that its frame is so large that it ends behind the stack, and that registers lie there. */
__asm__(".text\n"
        ".globl reached\n.type reached, @function\nreached: .cfi_startproc\n"
        "leaq 1(%rdi,%rdi), %rax\nnop\nnop\nnop\nnop\nret\n.cfi_endproc\n.size reached, . - reached\n"
        ".globl on_stack\n.type on_stack, @function\non_stack: .cfi_startproc\n"
        "pushq %rbx\nmovq %rsp, %rbx\nmovq %rdi, %rsp\nmovq %rsi, %rdi\n.cfi_def_cfa rsp, 256\n.cfi_offset rbp, -16\n"
        "call reached\nmovq %rbx, %rsp\n.cfi_def_cfa rsp, 16\n.cfi_restore rbp\npopq %rbx\nret\n"
        ".cfi_endproc\n.size on_stack, . - on_stack\n"
        ".globl strangely\n.type strangely, @function\nstrangely: .cfi_startproc\n"
        "subq $8, %rsp\n.cfi_def_cfa_offset 16\npushfq\norl $0x40400, (%rsp)\npopfq\n"
        "call reached\npushfq\nandl $~0x40400, (%rsp)\npopfq\naddq $8, %rsp\nret\n.cfi_endproc\n.size strangely, . - strangely\n");

static char *volatile other;

static void *come_and_go(void *nothing)
{
    for (;;) {
        mprotect(other + 4096, 4096, PROT_NONE);
        mprotect(other + 4096, 4096, PROT_READ | PROT_WRITE);
        pthread_testcancel();
    }
    return nothing;
}

int main(void)
{
    char line[64];
    const int all = PROT_READ | PROT_WRITE, how = MAP_PRIVATE | MAP_ANONYMOUS;
    char *stack = mmap(0, 3 * 4096, all, how, -1, 0);
    other = mmap(0, 2 * 4096, all, how, -1, 0);
    mprotect(stack + 2 * 4096, 4096, PROT_NONE);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        long sum = 0;
        /* Of all distances from the end of the page, and from its beginning. */
        for (long n = 0; n < 512; n += 8)
            sum += on_stack(stack + 2 * 4096 - n, n) + on_stack(stack + 4096 + 512 - n, n);
        pthread_t thread;
        pthread_create(&thread, 0, come_and_go, 0);
        for (long n = 0; n < 4000; n++)
            sum += on_stack(other + 4096 - 64, n);
        pthread_cancel(thread);
        pthread_join(thread, 0);
        for (long n = 0; n < 10; n++)
            sum += strangely(n);
        printf("%ld\n", sum);
        fflush(stdout);
    }
    return 0;
}
