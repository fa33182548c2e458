/* what: swapcontext and setcontext out of handlers, back into them, and from one stack's handler to another stack
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "note.h"

static ucontext_t home, in_handler, other;
static char stack[65536] __attribute__((aligned(64)));
static volatile int turns;

static void handler(int number)
{
    note("handler", number);
    swapcontext(&in_handler, &other);
    note("back in the handler", turns);
}

static void on_fault(int number)
{
    note("fault", number);
    setcontext(&home);
}

static void task(void)
{
    for (;;) {
        turns++;
        note("task", turns);
        if (turns % 2)
            raise(SIGUSR2);
        swapcontext(&other, &in_handler);
    }
}

static void plain(int number)
{
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    note("on the task's stack", number);
    note("first one blocked", sigismember(&mask, SIGUSR1));
}

int main(void)
{
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = plain;
    sigaction(SIGUSR2, &action, NULL);
    action.sa_handler = on_fault;
    sigaction(SIGSEGV, &action, NULL);
    getcontext(&other);
    other.uc_stack.ss_sp = stack;
    other.uc_stack.ss_size = sizeof stack;
    makecontext(&other, task, 0);
    for (int i = 0; i < 4; i++)
        raise(SIGUSR1);
    volatile int faults = 0;
    getcontext(&home);
    if (faults++ < 3)
        *(volatile int *)16 = 1;
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    note("blocked at the end", sigismember(&mask, SIGUSR1) + sigismember(&mask, SIGSEGV));
    note("faults", faults);
    return 0;
}
