/* what: a handler leaves a bad address of vector state in its context: rt_sigreturn raises SIGSEGV, which is handled
 * build: -O1
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

static char stack[65536];
static sigjmp_buf back;
static volatile int n;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    n++;
    siglongjmp(back, 1);
}

static void spoil(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    ((ucontext_t *)context)->uc_mcontext.fpregs = (void *)0x1000;
}

int main(void)
{
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    action = (struct sigaction){.sa_sigaction = spoil, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    if (!sigsetjmp(back, 1))
        raise(SIGUSR1);
    printf("%d\n", n);
    fflush(stdout);
    if (!sigsetjmp(back, 1))
        *(volatile int *)8 = 1;
    printf("%d\n", n);
    return 0;
}
