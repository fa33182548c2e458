/* what: signalfd, sigwaitinfo and sigtimedwait: values in order, timeouts, interruption by another signal, bad arguments
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void handler(int number) { (void)number; }

static void show(const char *what, int result, const siginfo_t *info)
{
    printf("%s: %d", what, result);
    if (result < 0)
        printf(" %s\n", strerrorname_np(errno));
    else
        printf(" code %d value %d mine %d\n", info->si_code, info->si_value.sival_int, info->si_pid == getpid());
}

int main(void)
{
    sigset_t set;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGRTMIN + 3);
    sigaddset(&set, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 3; i++) {
        sigqueue(getpid(), SIGRTMIN + 3, (union sigval){.sival_int = i});
        sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 10 + i});
    }
    raise(SIGUSR1);
    for (int i = 0; i < 7; i++) {
        int result = sigwaitinfo(&set, &info);
        show("sigwaitinfo", result - (result >= SIGRTMIN ? SIGRTMIN : 0), &info);
    }
    show("nothing there", sigtimedwait(&set, &info, &(struct timespec){0, 0}), &info);
    show("nothing comes", sigtimedwait(&set, &info, &(struct timespec){0, 3000000}), &info);
    show("bad time", sigtimedwait(&set, &info, &(struct timespec){0, 2000000000}), &info);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 3000}, {0, 3000}}, NULL);
    show("interrupted", sigwaitinfo(&set, &info), &info);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 99});
    show("without a place for it", sigtimedwait(&set, NULL, &(struct timespec){5, 0}) == SIGUSR1, &info);

    int file = signalfd(-1, &set, SFD_NONBLOCK);
    struct signalfd_siginfo got[4];
    printf("empty: %zd %s\n", read(file, got, sizeof got), strerrorname_np(errno));
    for (int i = 0; i < 3; i++)
        sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 20 + i});
    raise(SIGUSR1);
    struct pollfd wanted = {.fd = file, .events = POLLIN};
    printf("poll %d %d\n", poll(&wanted, 1, 1000), wanted.revents);
    ssize_t size = read(file, got, sizeof got);
    for (int i = 0; i < (int)(size / (ssize_t)sizeof *got); i++)
        printf("signalfd: %d code %d value %d mine %d\n", (int)got[i].ssi_signo - (got[i].ssi_signo >= (unsigned)SIGRTMIN ? SIGRTMIN : 0),
               got[i].ssi_code, got[i].ssi_int, (pid_t)got[i].ssi_pid == getpid());
    sigdelset(&set, SIGUSR1);
    printf("changed %d\n", signalfd(file, &set, 0) == file);
    raise(SIGUSR1);
    printf("not for it any more: %zd\n", read(file, got, sizeof got));
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    show("for sigwaitinfo", sigwaitinfo(&set, &info), &info);
    printf("too small: %zd %s\n", read(file, got, 10), strerrorname_np(errno));
    close(file);
    return 0;
}
