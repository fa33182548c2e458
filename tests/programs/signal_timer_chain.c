/* what: a timer that its handler sets anew each time, for some microseconds: each expiration comes, however fast they follow
 * build: -O1
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { EXPIRATIONS = 1000 };

static volatile int expired;
static volatile unsigned turns;
static timer_t timer;
static int uses_interval_timer;

static void set(void)
{
    struct itimerval once = {.it_value = {0, 10}};
    struct itimerspec once_by_number = {.it_value = {0, 10000}};
    if (uses_interval_timer)
        setitimer(ITIMER_REAL, &once, NULL);
    else
        timer_settime(timer, 0, &once_by_number, NULL);
}

static void handler(int number)
{
    (void)number;
    if (++expired < EXPIRATIONS)
        set();
}

int main(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    signal(SIGALRM, handler);
    signal(SIGUSR1, handler);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    for (uses_interval_timer = 0; uses_interval_timer < 2; uses_interval_timer++) {
        expired = 0;
        set();
        while (expired < EXPIRATIONS)
            turns++;
        printf("%s: %d\n", uses_interval_timer ? "setitimer" : "timer_settime", expired);
    }
    return 0;
}
