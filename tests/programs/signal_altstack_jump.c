/* what: stack overflow on guard pages, in the first thread and in others, handled on alternate stacks, left by jumps, many times
 * build: -O0 -pthread -fno-stack-protector
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static __thread sigjmp_buf back;
static __thread volatile uintptr_t deepest, fault_address;
static __thread volatile int depth;

static void handler(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    fault_address = (uintptr_t)info->si_addr;
    siglongjmp(back, 1);
}

static int dive(int n)
{
    volatile char frame[512];
    deepest = (uintptr_t)frame;
    depth = n;
    frame[n % 512] = (char)n;
    return dive(n + 1) + frame[0];
}

static void *overflow(void *name)
{
    char *stack = malloc(32768);
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = 32768}, NULL);
    int good = 0;
    for (volatile int i = 0; i < 5; i++) {
        if (sigsetjmp(back, 1) == 0)
            dive(0);
        else
            good += fault_address - deepest + 8192 < 16384 && depth > 100;
    }
    sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    free(stack);
    printf("%s: %d overflows\n", (const char *)name, good);
    return NULL;
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    setrlimit(RLIMIT_STACK, &(struct rlimit){1 << 20, RLIM_INFINITY});
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    overflow("first thread");
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 65536 + 65536 * (size_t)i);
        pthread_create(&thread, &attributes, overflow, "another thread");
        pthread_join(thread, NULL);
    }
    overflow("first thread again");
    return 0;
}
