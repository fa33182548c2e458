/* what: handlers that return: by kill, raise, sigqueue with a value, tgkill; SA_SIGINFO, SA_RESETHAND, SA_NODEFER, nested
 * build: -O1
 * traits: oracle
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include "note.h"

static volatile int depth, count;

static void plain(int number)
{
    note("plain", number);
    count++;
}

static void informed(int number, siginfo_t *info, void *context)
{
    (void)context;
    note("informed", number);
    note("code", info->si_code);
    note("value", info->si_value.sival_int);
    note("mine", info->si_pid == getpid());
    count++;
}

static void nested(int number)
{
    depth++;
    note("nested", number * 100 + depth);
    if (depth < 4)
        raise(number);
    note("leaving", depth);
    depth--;
}

static void chained(int number)
{
    note("chained", number);
    raise(SIGUSR1);
    raise(SIGRTMIN + 1);
    note("chained ends", number);
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = plain;
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < 5; i++)
        raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    syscall(SYS_tgkill, getpid(), (int)syscall(SYS_gettid), SIGUSR1);

    action.sa_sigaction = informed;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaction(SIGRTMIN + 1, &action, NULL);
    for (int i = 0; i < 3; i++)
        sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 40 + i});

    action.sa_handler = nested;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGUSR2, &action, NULL);
    raise(SIGUSR2);

    action.sa_handler = chained;
    action.sa_flags = 0;
    sigaddset(&action.sa_mask, SIGUSR1);      /* so SIGUSR1 comes after this handler, the other one inside it */
    sigaction(SIGHUP, &action, NULL);
    raise(SIGHUP);

    action.sa_handler = plain;
    action.sa_flags = (int)SA_RESETHAND;
    sigaction(SIGCHLD, &action, NULL);
    raise(SIGCHLD);
    raise(SIGCHLD);                            /* ignored by default */
    sigaction(SIGCHLD, NULL, &action);
    note("default again", action.sa_handler == SIG_DFL);
    signal(SIGTERM, SIG_IGN);
    raise(SIGTERM);
    note("count", count);
    return 0;
}
