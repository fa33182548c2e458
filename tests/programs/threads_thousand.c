/* what: 1,000 short-lived threads, sixteen at a time, each with own code paths, thread-local data, a signal, and small stacks
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static __thread unsigned long own;
static unsigned long results[1000];
static int handled;

static void handler(int number)
{
    (void)number;
    __atomic_fetch_add(&handled, 1, __ATOMIC_SEQ_CST);
}

static unsigned long mix(unsigned long x, unsigned kind)
{
    switch (kind % 5) {
    case 0: return x * 3 + 1;
    case 1: return x ^ (x << 7);
    case 2: return x + (x >> 3);
    case 3: return x * x + 5;
    default: return ~x;
    }
}

static void *work(void *argument)
{
    unsigned long *result = argument;
    unsigned number = (unsigned)(result - results);
    own = number;
    for (unsigned i = 0; i < 50; i++)
        own = mix(own, number + i);
    if (number % 10 == 0)
        pthread_kill(pthread_self(), SIGUSR1);
    *result = own;
    return NULL;
}

int main(void)
{
    enum { TOGETHER = 16 };
    pthread_t threads[TOGETHER];
    pthread_attr_t attributes;
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler}, NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 32768);
    for (int i = 0; i < 1000 + TOGETHER; i++) {
        if (i >= TOGETHER)
            pthread_join(threads[i % TOGETHER], NULL);
        if (i < 1000 && pthread_create(&threads[i % TOGETHER], &attributes, work, &results[i]) != 0)
            return 1;
    }
    unsigned long sum = 0;
    for (int i = 0; i < 1000; i++)
        sum = sum * 31 + results[i];
    printf("sum %lx, %d signals\n", sum, handled);
    return 0;
}
