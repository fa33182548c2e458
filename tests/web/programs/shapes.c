/* what: branches that go one way, the other, and both; loops in loops; a switch; calls through a table; four threads
 * build: -O1 -fno-inline -pthread
 */
#include <pthread.h>
#include <stdio.h>

static long always(long n)
{
    return n >= 0 ? n + 1 : -n;
}

static long never(long n)
{
    if (n < 0)
        return -n * 3;
    return n;
}

static long both(long n)
{
    if (n & 1)
        return 3 * n + 1;
    return n / 2;
}

static long choose(long n)
{
    switch (n % 7) {
    case 0: return n ^ 1;
    case 1: return n + 11;
    case 2: return n * 5;
    case 3: return n - 2;
    case 4: return n ^ 77;
    case 5: return n / 3;
    default: return n;
    }
}

static long nested(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++)
            sum += both(i * j);
    return sum;
}

static long down(long n)
{
    return n == 0 ? 0 : 1 + down(n - 1);
}

static long (*const table[])(long) = {always, never, both, choose};

static void *work(void *argument)
{
    long me = (long)argument, sum = 0;
    for (long i = 0; i < 40 * (me + 1); i++)
        sum += table[(i + me) % 4](i);
    sum += nested(10 + me) + down(12);
    return (void *)sum;
}

int main(void)
{
    pthread_t threads[4];
    long sum = 0;
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    for (long i = 0; i < 200; i++)
        sum += choose(both(i));
    printf("%ld\n", sum);
    return 0;
}
