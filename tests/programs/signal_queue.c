/* what: real-time signals: queued in order with their values, lower numbers first, others merged, the limit of the queue
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "note.h"

static void handler(int number, siginfo_t *info, void *context)
{
    (void)context;
    note("signal", number >= SIGRTMIN ? 1000 + number - SIGRTMIN : number);
    note("  value", info->si_value.sival_int);
    note("  code", info->si_code);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigset_t all, old;
    sigfillset(&all);
    for (int i = 0; i <= 5; i++)
        sigaction(SIGRTMIN + i, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    sigaction(SIGRTMAX, &action, NULL);
    for (int round = 0; round < 2; round++) {
        sigprocmask(SIG_BLOCK, &all, &old);
        for (int i = 0; i < 4; i++) {
            sigqueue(getpid(), SIGRTMIN + 5 - i, (union sigval){.sival_int = i});
            sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = 100 + i});
            sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 200 + i});
            raise(SIGUSR1);
        }
        /* To the thread, and to the process: the thread's come first. */
        siginfo_t info = {.si_signo = SIGRTMIN, .si_code = SI_QUEUE, .si_value.sival_int = 300};
        syscall(SYS_rt_tgsigqueueinfo, getpid(), (int)syscall(SYS_gettid), SIGRTMIN + 5, &info);
        note("unblocking", round);
        sigprocmask(SIG_SETMASK, &old, NULL);
        note("done", round);
        sigqueue(getpid(), SIGRTMAX, (union sigval){.sival_int = -1});
    }
    siginfo_t forged = {.si_signo = SIGUSR1, .si_code = SI_USER};
    note("to oneself with the kernel's code", syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &forged));
    sigprocmask(SIG_BLOCK, &all, &old);
    struct rlimit limit, small;
    getrlimit(RLIMIT_SIGPENDING, &limit);
    small = (struct rlimit){3, limit.rlim_max};
    setrlimit(RLIMIT_SIGPENDING, &small);
    int sent = 0;
    while (sent < 100000 && sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = sent}) == 0)
        sent++;
    note("queue is full", errno == EAGAIN);
    note("a few fit", sent <= 3);
    while (sent-- > 0)
        sigtimedwait(&all, NULL, &(struct timespec){0, 0});
    setrlimit(RLIMIT_SIGPENDING, &limit);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return 0;
}
