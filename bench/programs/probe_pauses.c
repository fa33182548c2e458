/* Threads that call a function without end, and note the longest time between two calls. Arguments: how many threads. Says `ready`, and for each
 * line the longest time since the line before, in nanoseconds. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static atomic_ullong longest_ns;

__attribute__((noipa)) long called(long a)
{
    __asm__ volatile("" ::: "memory");
    return a * 3 + 1;
}

static unsigned long long now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1000000000ull * (unsigned long long)time.tv_sec + (unsigned long long)time.tv_nsec;
}

static void *call(void *argument)
{
    long sum = 0;
    for (unsigned long long before = now_ns(), now;; before = now) {
        sum = called(sum);
        now = now_ns();
        unsigned long long known = longest_ns;
        while (now - before > known && !atomic_compare_exchange_weak(&longest_ns, &known, now - before)) ;
    }
    return argument;
}

int main(int argc, char **argv)
{
    char line[16];
    for (int n = atoi(argv[argc - 1]); n > 0; n--) {
        pthread_t thread;
        pthread_create(&thread, 0, call, 0);
    }
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        printf("%llu\n", atomic_exchange(&longest_ns, 0));
        fflush(stdout);
    }
    return 0;
}
