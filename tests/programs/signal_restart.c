/* what: interrupted system calls: EINTR without SA_RESTART, restarted with it, nanosleep with the rest, poll never restarts
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include "note.h"

static int tube[2];
static volatile int handled;

static void on_alarm(int number)
{
    (void)number;
    handled++;
    if (handled % 3 == 2)             /* the second alarm of a round gives the restarted read something */
        if (write(tube[1], "x", 1) != 1)
            _exit(9);
}

static void arm(int flags, int every)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    action.sa_flags = flags;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, every * 10000}, {0, 10000}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

int main(void)
{
    char byte = 0;
    if (pipe(tube) != 0)
        return 1;
    for (int round = 0; round < 3; round++) {
        handled = 0;
        arm(0, 0);
        ssize_t got = read(tube[0], &byte, 1);
        note("read", got);
        note("errno", got < 0 ? errno : 0);
        note("handled", handled);
        handled = 0;
        arm(SA_RESTART, 1);
        got = read(tube[0], &byte, 1);
        struct itimerval off = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &off, NULL);
        note("restarted read", got);
        note("handled at least twice", handled >= 2);
        handled = 0;
        arm(SA_RESTART, 0);
        struct timespec pause = {5, 0}, rest = {0, 0};
        note("nanosleep", nanosleep(&pause, &rest));
        note("rest is right", rest.tv_sec == 4);
        handled = 0;
        arm(SA_RESTART, 0);
        struct pollfd wait = {.fd = tube[0], .events = POLLIN};
        note("poll", poll(&wait, 1, -1));
        note("poll errno", errno);
    }
    return 0;
}
