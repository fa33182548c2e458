/* A timer that expires every 10 microseconds while a loop is to get on.
 *
 * Argument: `setitimer` or `timer_create`. Writes what the loop came to, and whether the handler ran.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

enum { TURNS = 200000 };

static volatile int n_handled;

static void handler(int number)
{
    (void)number;
    n_handled++;
}

int main(int count, char **words)
{
    struct itimerval interval = {{0, 10}, {0, 10}}, never = {{0, 0}, {0, 0}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct itimerspec by_number = {{0, 10000}, {0, 10000}}, never_by_number = {{0, 0}, {0, 0}};
    int is_interval_timer = count > 1 && strcmp(words[1], "setitimer") == 0;
    unsigned value = 1;
    timer_t timer;
    signal(SIGALRM, handler);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    if (is_interval_timer)
        setitimer(ITIMER_REAL, &interval, NULL);
    else
        timer_settime(timer, 0, &by_number, NULL);
    for (int turn = 0; turn < TURNS; turn++)
        value = turn % 3 == 0 ? value * 1103515245 + 12345 : value ^ (unsigned)turn;
    if (is_interval_timer)
        setitimer(ITIMER_REAL, &never, NULL);
    else
        timer_settime(timer, 0, &never_by_number, NULL);
    printf("%u %d\n", value, n_handled > 0);
    return 0;
}
