/* 1,000 threads; number N runs N + 2 turns and says which thread it is.
 *
 * Argument: how many live at the same time; all of these have begun before one of them ends.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "turns.h"

enum { THREADS = 1000 };

static pthread_barrier_t begun;
static int tids[THREADS];

static void *work(void *argument)
{
    int *tid = argument;
    pthread_barrier_wait(&begun);
    run_turns(tid - tids + 2);
    *tid = gettid();
    return NULL;
}

int main(int argc, char **argv)
{
    int together = argc > 1 ? atoi(argv[1]) : 10;
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 32768);
    for (int first = 0; first < THREADS; first += together) {
        pthread_barrier_init(&begun, NULL, (unsigned)together);
        for (int i = first; i < first + together; i++)
            if (pthread_create(&threads[i], &attributes, work, &tids[i]) != 0)
                return 1;
        for (int i = first; i < first + together; i++)
            pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < THREADS; i++)
        printf("%d %d\n", tids[i], i + 2);
    return 0;
}
