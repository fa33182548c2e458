/* Threads call a function whose results they check, until there is input; prints how many were wrong. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_THREADS 64

static volatile int is_over;

__attribute__((noinline)) long leaf(long a, long b)
{
    long kept[8];
    for (int n = 0; n < 8; n++) kept[n] = a + n * b;
    return kept[a & 7];
}

static void *run(void *nothing)
{
    long n_wrong = 0;
    (void)nothing;
    for (long n = 0; !is_over; n++) n_wrong += leaf(n, 3) != n + (n & 7) * 3;
    return (void *)n_wrong;
}

int main(int count, char **arguments)
{
    pthread_t threads[MAX_THREADS];
    int n_threads = count > 1 ? atoi(arguments[1]) : 2;
    long n_wrong = 0;
    if (n_threads > MAX_THREADS) return 2;
    for (int n = 0; n < n_threads; n++) pthread_create(&threads[n], 0, run, 0);
    puts("ready");
    fflush(stdout);
    getchar();
    is_over = 1;
    for (int n = 0; n < n_threads; n++) {
        void *wrong;
        pthread_join(threads[n], &wrong);
        n_wrong += (long)wrong;
    }
    printf("%ld\n", n_wrong);
    return n_wrong != 0;
}
