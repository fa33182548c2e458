/* what: sigaltstack: handlers run there, also after a stack overflow; nested handlers; flags as the kernel reports them
 * build: -O1 -fno-stack-protector -fno-optimize-sibling-calls
 * traits: oracle
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "note.h"

static char area[65536] __attribute__((aligned(16)));
static sigjmp_buf back;
static volatile int sink;

static int on_area(void)
{
    char here;
    return (uintptr_t)&here - (uintptr_t)area < sizeof area;
}

static void inner(int number) { note("inner, on the other stack", on_area() + 0 * number); }

static void handler(int number, siginfo_t *info, void *context)
{
    stack_t stack;
    (void)info, (void)context;
    note("handler, on the other stack", on_area() + 0 * number);
    sigaltstack(NULL, &stack);
    note("flags", stack.ss_flags);
    stack.ss_flags = SS_DISABLE;
    note("change refused", sigaltstack(&stack, NULL));
    raise(SIGUSR2);
}

static void overflow(int number, siginfo_t *info, void *context)
{
    (void)context, (void)info;
    note("overflow, on the other stack", on_area() + 0 * number);
    siglongjmp(back, 1);
}

static int dive(int n)
{
    volatile char frame[4000];
    frame[n & 1023] = (char)n;
    return dive(n + 1) + frame[0];
}

int main(void)
{
    struct sigaction action;
    stack_t stack = {.ss_sp = area, .ss_size = sizeof area};
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = inner;
    action.sa_flags = 0;
    sigaction(SIGUSR2, &action, NULL);
    raise(SIGUSR1);
    sigaltstack(&stack, NULL);
    raise(SIGUSR1);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    action.sa_sigaction = overflow;
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < 2; i++) {
        if (sigsetjmp(back, 1) == 0)
            sink = dive(0);
        else
            note("back from the overflow", i);
    }
    sigaltstack(NULL, &stack);
    note("flags at the end", stack.ss_flags);
    stack.ss_size = 100;
    stack.ss_flags = 0;
    note("too small", sigaltstack(&stack, NULL));
    return 0;
}
