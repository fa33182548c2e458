/* what: masks: blocked signals wait, arrive in order on unblocking, sigpending, sigsuspend, sigwait, handlers' own masks
 * build: -O1
 * traits: oracle
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "note.h"

static void show(int number)
{
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    int bits = 0;
    for (int i = 1; i < 32; i++)
        if (sigismember(&mask, i))
            bits |= 1 << (i & 31);
    note("handler", number);
    note("with mask", bits);
}

int main(void)
{
    struct sigaction action;
    sigset_t set, old, pending, empty;
    memset(&action, 0, sizeof action);
    action.sa_handler = show;
    sigaddset(&action.sa_mask, SIGHUP);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    sigaction(SIGRTMIN, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGRTMIN);
    sigprocmask(SIG_BLOCK, &set, &old);
    raise(SIGUSR2);
    raise(SIGUSR1);
    raise(SIGUSR1);
    for (int i = 0; i < 3; i++)
        raise(SIGRTMIN);
    sigpending(&pending);
    note("pending", sigismember(&pending, SIGUSR1) + 2 * sigismember(&pending, SIGUSR2));
    sigprocmask(SIG_SETMASK, &old, NULL);
    note("unblocked", 0);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    sigemptyset(&empty);
    note("sigsuspend", sigsuspend(&empty));
    raise(SIGUSR2);
    int number = 0;
    sigwait(&set, &number);
    note("sigwait", number);
    sigprocmask(SIG_BLOCK, NULL, &old);
    note("still blocked", sigismember(&old, SIGUSR1));
    return 0;
}
