/* what: signals that do not fit: alternate stacks too small, stack pointers to nowhere, frames to return from that are not there
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "note.h"

static sigjmp_buf back;
static char big[65536], small[2048];

static void show_mask(void)
{
    sigset_t mask;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    note("blocks SIGUSR1", sigismember(&mask, SIGUSR1));
    note("blocks SIGSEGV", sigismember(&mask, SIGSEGV));
    note("blocks SIGHUP", sigismember(&mask, SIGHUP));
}

static void on_segv(int number, siginfo_t *info, void *opaque)
{
    ucontext_t *context = opaque;
    note("signal", number);
    note("code", info->si_code);
    note("address", (long)info->si_addr);
    note("stack flags in the frame", context->uc_stack.ss_flags);
    note("stack size in the frame", (long)context->uc_stack.ss_size);
    note("rax", context->uc_mcontext.gregs[REG_RAX]);
    show_mask();
    siglongjmp(back, 1);
}

static void on_user(int number, siginfo_t *info, void *opaque)
{
    (void)info;
    note("signal", number);
    note("stack flags in the frame", ((ucontext_t *)opaque)->uc_stack.ss_flags);
    stack_t stack;
    sigaltstack(NULL, &stack);
    note("stack flags now", stack.ss_flags);
}

static void set_action(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigaddset(&action.sa_mask, SIGHUP);
    sigaction(number, &action, NULL);
}

static void set_stack(const char *what, void *memory, size_t size, int flags)
{
    stack_t stack = {.ss_sp = memory, .ss_size = size, .ss_flags = flags}, old = {0};
    note(what, sigaltstack(&stack, &old) == 0 ? 0 : errno);
    note("old flags", old.ss_flags);
}

/* Sends SIGUSR1 with the stack pointer at rdi. */
__attribute__((naked, noinline)) static void raise_on(uintptr_t stack, int pid, int tid)
{
    (void)stack, (void)pid, (void)tid;
    __asm__("mov %rsp, %r12\n mov %rdi, %rsp\n mov %esi, %edi\n mov %edx, %esi\n mov $10, %edx\n mov $234, %eax\n syscall\n"
            "mov %r12, %rsp\n ret\n");
}

__attribute__((naked, noinline)) static void return_from(uintptr_t stack)
{
    (void)stack;
    __asm__("mov %rdi, %rsp\n mov $15, %eax\n syscall\n hlt\n");
}

int main(void)
{
    set_action(SIGUSR1, on_user, 0);
    set_action(SIGSEGV, on_segv, 0);
    raise(SIGUSR1);
    set_stack("none, as it is", NULL, 0, 0);
    set_stack("too small to be set", small, 2047, 0);
    set_stack("set", big, sizeof big, 0);
    set_action(SIGUSR1, on_user, SA_ONSTACK);
    raise(SIGUSR1);
    set_stack("set", big, sizeof big, SS_ONSTACK);
    raise(SIGUSR1);
    set_stack("small", small, sizeof small, 0);
    note("frame larger than the stack", 0);
    if (sigsetjmp(back, 1) == 0)
        raise(SIGUSR1);
    show_mask();
    set_stack("disabled", NULL, 0, SS_DISABLE);
    set_stack("big", big, sizeof big, 0);
    set_action(SIGUSR1, on_user, 0);
    set_action(SIGSEGV, on_segv, SA_ONSTACK);
    char *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page, 4096, PROT_NONE);
    static const long stacks[] = {0, 0x1000, -8};
    for (int i = 0; i < 5; i++) {
        note("stack pointer to nowhere", i);
        uintptr_t stack = i < 3 ? (uintptr_t)stacks[i] : (uintptr_t)page + (i == 3 ? 4096 : 8192);
        if (sigsetjmp(back, 1) == 0)
            raise_on(stack, getpid(), (int)syscall(SYS_gettid));
        show_mask();
        note("no frame to return from", i);
        if (sigsetjmp(back, 1) == 0)
            return_from(i == 4 ? (uintptr_t)page + 4096 : stack);
    }
    return 0;
}
