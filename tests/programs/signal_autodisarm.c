/* what: sigaltstack: SS_AUTODISARM, changes inside handlers, stacks inside stacks, bad flags and addresses, threads have their own
 * build: -O1 -pthread -fno-stack-protector
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "note.h"

enum { AUTODISARM = (int)(1u << 31) };

static char first[32768] __attribute__((aligned(64))), second[32768] __attribute__((aligned(64)));
static volatile int depth;
static sigjmp_buf back;

static int which(void)
{
    char here;
    uintptr_t at = (uintptr_t)&here;
    return at - (uintptr_t)first < sizeof first ? 1 : at - (uintptr_t)second < sizeof second ? 2 : 0;
}

static void show(const char *what)
{
    stack_t stack;
    note(what, sigaltstack(NULL, &stack));
    note("  is", stack.ss_sp == first ? 1 : stack.ss_sp == second ? 2 : stack.ss_sp == NULL ? 0 : 9);
    note("  flags", stack.ss_flags);
    note("  size", (long)stack.ss_size);
}

static void set(void *where, int flags, size_t size)
{
    stack_t stack = {.ss_sp = where, .ss_flags = flags, .ss_size = size};
    int result = sigaltstack(&stack, NULL);
    note("sigaltstack", result);
    if (result != 0)
        note("  errno", errno);
}

static void handler(int number, siginfo_t *info, void *opaque)
{
    ucontext_t *context = opaque;
    (void)number, (void)info;
    note("in the handler, depth", depth);
    note("on", which());
    note("context's flags", context->uc_stack.ss_flags);
    note("context's stack", context->uc_stack.ss_sp == first ? 1 : context->uc_stack.ss_sp == second ? 2 : 0);
    show("here");
    if (depth++ < 2) {
        set(depth == 1 ? second : first, depth == 1 ? 0 : AUTODISARM, sizeof first);
        raise(SIGUSR2);
        show("after the inner one");
    }
    if (depth == 99)
        siglongjmp(back, 1);
}

static void change_context(int number, siginfo_t *info, void *opaque)
{
    ucontext_t *context = opaque;
    (void)number, (void)info;
    context->uc_stack.ss_sp = second;
    context->uc_stack.ss_size = 20000;
    context->uc_stack.ss_flags = 0;
}

static void *thread(void *nothing)
{
    show("in a thread");
    depth = 5;
    raise(SIGUSR1);
    return nothing;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    show("at first");
    for (int i = 0; i < 2; i++) {
        set(first, i ? AUTODISARM : 0, sizeof first);
        show("set");
        depth = 0;
        raise(SIGUSR1);
        show("after");
    }
    set(first, AUTODISARM, sizeof first);
    depth = 98;
    if (sigsetjmp(back, 1) == 0)
        raise(SIGUSR1);
    show("after a jump out");            /* still disarmed */
    action.sa_sigaction = change_context;
    sigaction(SIGHUP, &action, NULL);
    raise(SIGHUP);
    show("changed in the context");
    set(first, 3, sizeof first);
    set(first, SS_ONSTACK, sizeof first);
    show("by SS_ONSTACK");
    set(first, SS_DISABLE | SS_ONSTACK, sizeof first);
    set(first, 4, 0);
    set(first, SS_DISABLE | AUTODISARM, 1);
    show("disabled");
    set(first, 0, 2047);
    set(first, 0, 2048);
    set((void *)1, 0, 8192);
    show("at address 1");
    errno = 0;
    note("bad pointer", sigaltstack((void *)8, NULL));
    note("errno", errno);
    note("bad place for the old one", sigaltstack(NULL, (void *)8));
    note("errno", errno);
    set(NULL, SS_DISABLE, 0);
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    return 0;
}
