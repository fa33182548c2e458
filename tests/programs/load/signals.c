/* 100,000 signals by timers, one for each of two threads that work meanwhile; prints how often the handler ran. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "turns.h"

enum { SIGNALS = 100000, THREADS = 2, INTERVAL_NS = 20000 };

static volatile long handled[THREADS];
static __thread int own;

__attribute__((noinline)) static void handle(int number)
{
    (void)number;
    handled[own]++;
}

static void *work(void *argument)
{
    own = (int)(long)argument;
    struct sigevent event;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGUSR1;
    event._sigev_un._tid = gettid();
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        _exit(1);
    struct itimerspec interval = {{0, INTERVAL_NS}, {0, INTERVAL_NS}};
    timer_settime(timer, 0, &interval, NULL);
    while (handled[own] < SIGNALS / THREADS)
        run_turns(1000);
    timer_delete(timer);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    sigaction(SIGUSR1, &action, NULL);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    long sum = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        sum += handled[i];
    printf("%ld\n", sum);
    return 0;
}
