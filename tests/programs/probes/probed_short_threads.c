/* A thousand threads, a few at a time, each of which calls a function once. */
#include <pthread.h>
#include <stdio.h>

#define N_THREADS 1000
#define AT_A_TIME 4

__attribute__((noinline)) long work(long a, long b)
{
    __asm__ volatile("" ::: "memory");
    return a * 3 + b;
}

static void *run(void *number)
{
    return (void *)work((long)number, 7);
}

int main(void)
{
    long sum = 0;
    for (long first = 0; first < N_THREADS; first += AT_A_TIME) {
        pthread_t threads[AT_A_TIME];
        for (long n = 0; n < AT_A_TIME; n++) pthread_create(&threads[n], 0, run, (void *)(first + n));
        for (long n = 0; n < AT_A_TIME; n++) {
            void *result;
            pthread_join(threads[n], &result);
            sum += (long)result;
        }
    }
    printf("%ld\n", sum);
    return 0;
}
