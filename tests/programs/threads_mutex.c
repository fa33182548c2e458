/* what: four threads, mutexes, condition variables, barriers; every increment arrives
 * build: -O2 -pthread
 * also: static -O2 -pthread -static
 */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static long counter, whose, hash = 1;

static void *work(void *argument)
{
    long me = (long)argument;
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&mutex);
        while (whose != me)
            pthread_cond_wait(&turn, &mutex);
        hash = hash * 31 + me;
        whose = (whose + 1) % 4;
        pthread_cond_broadcast(&turn);
        pthread_mutex_unlock(&mutex);
    }
    return (void *)(me * 11);
}

int main(void)
{
    pthread_t threads[4];
    long sum = 0;
    pthread_barrier_init(&barrier, NULL, 4);
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    printf("%ld %ld %ld\n", counter, hash, sum);
    return 0;
}
