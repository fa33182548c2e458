/* what: signals sent to chosen threads with pthread_kill, handled there; one thread waits with sigwait
 * build: -O2 -pthread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static _Thread_local int mine;
static atomic_int wrong, right, ready, stop;

static void handler(int number)
{
    (void)number;
    if (mine > 0)
        atomic_fetch_add(&right, 1);
    else
        atomic_fetch_add(&wrong, 1);
}

static void *work(void *argument)
{
    mine = 1 + (int)(long)argument;
    unsigned long x = 1;
    atomic_fetch_add(&ready, 1);
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        x = x * 3 + 1;
    return (void *)(x & 1);
}

static void *collect(void *argument)
{
    sigset_t *set = argument;
    int number;
    for (int i = 0; i < 10; i++)
        if (sigwait(set, &number) != 0 || number != SIGUSR2)
            atomic_fetch_add(&wrong, 1);
        else
            atomic_fetch_add(&ready, 1);
    return NULL;
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGUSR1, &action, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_t threads[3], collector;
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    while (atomic_load(&ready) < 3)
        usleep(1000);
    for (int i = 0; i < 60; i++) {
        pthread_kill(threads[i % 3], SIGUSR1);
        while (atomic_load(&right) + atomic_load(&wrong) < i + 1)
            ;
    }
    atomic_store(&stop, 1);
    pthread_create(&collector, NULL, collect, &set);
    for (int i = 0; i < 10; i++) {
        kill(getpid(), SIGUSR2);
        while (atomic_load(&ready) < 4 + i)
            usleep(100);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    pthread_join(collector, NULL);
    printf("right %d wrong %d\n", right, wrong);
    return 0;
}
