/* Two threads that call a function in a loop, as often as the arguments say, and the first one, which waits for them. Each gives
 * itself its name, and tells it with its number. With a third argument the second thread begins when there is something to read. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Who calls more often than that rests now and then, so that events of it can be taken as fast as they come. */
#define ENOUGH 10000000000

static long turns[2];
static int waits;

__attribute__((noinline)) long work(long value)
{
    __asm__ volatile("" : "+r"(value));
    return value * 3 + 1;
}

static void *run(void *name)
{
    long sum = 0;
    long n = turns[*(const char *)name == 'o'];
    pthread_setname_np(pthread_self(), name);
    printf("%s %d\n", (const char *)name, (int)gettid());
    fflush(stdout);
    char byte;
    if (waits && *(const char *)name == 'o' && read(0, &byte, 1) != 1)
        return NULL;
    for (long i = 0; i < n; i++) {
        sum += work(i);
        if (n > ENOUGH && i % 100 == 0)
            usleep(1000);
    }
    return (void *)sum;
}

int main(int count, char **words)
{
    pthread_t chosen, other;
    turns[0] = turns[1] = count > 1 ? atol(words[1]) : 1000;
    if (count > 2)
        turns[1] = atol(words[2]);
    waits = count > 3;
    pthread_create(&chosen, NULL, run, "chosen");
    pthread_create(&other, NULL, run, "other");
    pthread_join(chosen, NULL);
    pthread_join(other, NULL);
    return 0;
}
