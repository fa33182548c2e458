/* what: rt_sigreturn from a copy of the context behind which nothing is mapped: the kernel reads no more of a frame
 * build: -O1
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What the kernel calls struct ucontext, with its mask of 64 signals. */
#define CONTEXT_BYTES 304

static char *pages;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    char *copy = pages + 4096 - CONTEXT_BYTES;
    memcpy(copy, context, CONTEXT_BYTES);
    asm volatile("mov %0, %%rsp\n\tmov $15, %%eax\n\tsyscall" : : "r"(copy) : "memory");
}

int main(void)
{
    pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 4096, PROT_NONE);
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    puts("back");
    return 0;
}
