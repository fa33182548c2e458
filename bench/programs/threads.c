/* Threads, four if not told otherwise, that compute, and take a mutex now and then: ROUNDS of them each, then how many. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_THREADS = 1024 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long rounds, total;

static void *work(void *argument)
{
    unsigned long x = (unsigned long)argument;
    for (unsigned long i = 0; i < rounds; i++) {
        for (unsigned j = 0; j < 200; j++)
            x = (x ^ (x >> 7)) * 0x9e3779b97f4a7c15u + j;
        pthread_mutex_lock(&mutex);
        total += x;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 4;
    pthread_t threads[MAX_THREADS];
    if (count > MAX_THREADS)
        return 1;
    for (unsigned long i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (unsigned long i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    printf("%lu\n", total);
    return 0;
}
