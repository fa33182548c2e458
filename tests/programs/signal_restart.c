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
static volatile int handled, is_fed;

static void on_alarm(int number)
{
    (void)number;
    handled++;
    if (is_fed && handled == 2)       /* the second alarm gives the restarted read something */
        if (write(tube[1], "x", 1) != 1)
            _exit(9);
}

/* Again and again: the first alarm may come before what it is to interrupt. */
static void arm(int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    action.sa_flags = flags;
    sigaction(SIGALRM, &action, NULL);
    handled = 0;
    struct itimerval timer = {{0, 10000}, {0, 10000}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void disarm(void)
{
    struct itimerval off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &off, NULL);
}

static long long nanoseconds(struct timespec time)
{
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void sleep_interrupted(void)
{
    struct timespec pause = {5, 0}, rest = {0, 0}, before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    arm(SA_RESTART);
    int result = nanosleep(&pause, &rest);
    disarm();
    clock_gettime(CLOCK_MONOTONIC, &after);
    long long elapsed = nanoseconds(after) - nanoseconds(before), left = nanoseconds(rest);
    note("nanosleep", result);
    note("rest is right", left > 0 && left < nanoseconds(pause) && left + elapsed >= nanoseconds(pause));
}

int main(void)
{
    char byte = 0;
    if (pipe(tube) != 0)
        return 1;
    for (int round = 0; round < 3; round++) {
        arm(0);
        ssize_t got = read(tube[0], &byte, 1);
        int error = got < 0 ? errno : 0;
        disarm();
        note("read", got);
        note("errno", error);
        note("handled", handled >= 1);
        is_fed = 1;
        arm(SA_RESTART);
        got = read(tube[0], &byte, 1);
        disarm();
        is_fed = 0;
        note("restarted read", got);
        note("handled at least twice", handled >= 2);
        sleep_interrupted();
        arm(SA_RESTART);
        struct pollfd wait = {.fd = tube[0], .events = POLLIN};
        int ready = poll(&wait, 1, -1);
        error = errno;
        disarm();
        note("poll", ready);
        note("poll errno", error);
    }
    return 0;
}
