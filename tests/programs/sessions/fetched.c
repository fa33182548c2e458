/* A thread that gets signals, faults all the time, and looks at its masks, until SIGUSR2 comes. It blocks SIGTRAP.
 *
 * Prints "ready", then how often its handler ran for SIGHUP and SIGRTMIN, and how many masks were wrong.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static volatile long handled[2], wrong, finished;

static uint64_t mask_of(void *context)
{
    uint64_t mask;
    memcpy(&mask, &((ucontext_t *)context)->uc_sigmask, 8);
    return mask;
}

static uint64_t bit(int number) { return (uint64_t)1 << (number - 1); }

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)info;
    wrong += (mask_of(context) & bit(SIGTRAP)) == 0;
    handled[number != SIGHUP]++;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    wrong += mask_of(context) != bit(SIGTRAP);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 3;
}

static void finish(int number) { finished = number; }

int main(void)
{
    struct sigaction action;
    sigset_t traps;
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = on_signal;
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGRTMIN, &action, NULL);
    action.sa_sigaction = on_fault;
    sigaction(SIGSEGV, &action, NULL);
    signal(SIGUSR2, finish);
    sigemptyset(&traps);
    sigaddset(&traps, SIGTRAP);
    sigprocmask(SIG_BLOCK, &traps, NULL);
    puts("ready");
    fflush(stdout);
    while (!finished) {
        uint64_t mask = 0;
        __asm__ volatile("movq (%0), %0" : : "a"((uintptr_t)8) : "memory");
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &mask, 8);
        wrong += mask != bit(SIGTRAP);
    }
    printf("%ld %ld %ld\n", handled[0], handled[1], wrong);
    return 0;
}
