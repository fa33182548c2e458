/* what: sigsuspend, ppoll, pselect, epoll_pwait, epoll_pwait2 and sigwaitinfo: signals that wait come inside, the mask comes back
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include "note.h"

static volatile int handled;

static long bits_of(const sigset_t *mask)
{
    long bits = 0;
    for (int i = 1; i < 32; i++)
        bits |= (long)sigismember(mask, i) << i;
    return bits;
}

static void handler(int number, siginfo_t *info, void *context)
{
    (void)info;
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    handled++;
    note("handler", number);
    note("  mask", bits_of(&mask));
    note("  mask in the frame", bits_of(&((ucontext_t *)context)->uc_sigmask));
}

static void after(const char *what, long result)
{
    int error = errno;
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    note(what, result);
    note("  errno", result < 0 ? error : 0);
    note("  mask", bits_of(&mask));
    note("  handled", handled);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaddset(&action.sa_mask, SIGHUP);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    sigset_t both, none, only_usr2;
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGUSR2);
    sigaddset(&both, SIGALRM);
    sigemptyset(&none);
    sigemptyset(&only_usr2);
    sigaddset(&only_usr2, SIGUSR2);
    sigprocmask(SIG_BLOCK, &both, NULL);
    int tube[2], queue = epoll_create1(0);
    if (pipe(tube) != 0)
        return 1;
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(queue, EPOLL_CTL_ADD, tube[0], &event);
    struct pollfd wanted = {.fd = tube[0], .events = POLLIN};
    struct timespec now = {0, 0}, later = {20, 0};
    for (int round = 0; round < 2; round++) {
        /* Two wait: both come, one handler inside the other's start. */
        raise(SIGUSR2);
        raise(SIGUSR1);
        after("sigsuspend", sigsuspend(&none));
        raise(SIGUSR1);
        raise(SIGUSR2);
        after("ppoll, one let in", ppoll(&wanted, 1, &later, &only_usr2));
        after("ppoll, the other", ppoll(&wanted, 1, &later, &none));
        after("ppoll, nothing", ppoll(&wanted, 1, &now, &none));
        raise(SIGUSR1);
        fd_set set;
        FD_ZERO(&set);
        FD_SET(tube[0], &set);
        after("pselect", pselect(tube[0] + 1, &set, NULL, NULL, &later, &none));
        raise(SIGUSR2);
        after("epoll_pwait", epoll_pwait(queue, &event, 1, 20000, &none));
        raise(SIGUSR2);
        after("epoll_pwait2", epoll_pwait2(queue, &event, 1, &later, &none));
        /* Something to read is there, and a signal waits: the call has its result, and the mask comes back all the same. */
        if (write(tube[1], "x", 1) != 1)
            return 1;
        raise(SIGUSR1);
        after("ppoll with both", ppoll(&wanted, 1, &later, &none));
        after("ppoll again", ppoll(&wanted, 1, &later, &none));
        raise(SIGUSR1);
        after("epoll_pwait with both", epoll_pwait(queue, &event, 1, 20000, &none));
        char byte;
        after("read", read(tube[0], &byte, 1));
        after("ppoll what is left", ppoll(&wanted, 1, &now, &none));
        /* Interrupted while it waits. */
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 5000}}, NULL);
        after("sigsuspend, alarm", sigsuspend(&none));
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 5000}}, NULL);
        after("ppoll, alarm", ppoll(&wanted, 1, NULL, &none));
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 5000}}, NULL);
        after("epoll_pwait, alarm", epoll_pwait(queue, &event, 1, -1, &none));
    }
    errno = 0;
    after("bad size of a mask", syscall(SYS_ppoll, &wanted, 1, &now, &none, 4));
    after("bad mask", syscall(SYS_ppoll, &wanted, 1, &now, (void *)8, 8));
    after("bad mask", syscall(SYS_rt_sigsuspend, (void *)8, 8));
    return 0;
}
