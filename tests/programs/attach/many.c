/* what: as many threads as the argument says, every other one computing, the rest waiting, until SIGTERM
 * build: -O1 -pthread
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t is_over;
static long n = 100;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;

static void end(int signal)
{
    (void)signal;
    is_over = 1;
}

static void *run(void *number)
{
    unsigned long value = 1;
    if ((long)number & 1) {
        while (!is_over) {
            for (int i = 0; i < 1000; i++)
                value = value * 3 + 1;
            /* However many they are, they keep no processor busy together. */
            usleep((useconds_t)(n * 100));
        }
    } else {
        pthread_mutex_lock(&mutex);
        while (!is_over)
            pthread_cond_wait(&over, &mutex);
        pthread_mutex_unlock(&mutex);
    }
    return value ? number : NULL;
}

int main(int argc, char **argv)
{
    static pthread_t threads[5000];
    long n_bad = 0;
    if (argc > 1)
        n = atol(argv[1]);
    signal(SIGTERM, end);
    for (long i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)(i + 1)))
            return 2;
    puts("ready");
    fflush(stdout);
    while (!is_over)
        usleep(5000);
    pthread_mutex_lock(&mutex);
    pthread_cond_broadcast(&over);
    pthread_mutex_unlock(&mutex);
    for (long i = 0; i < n; i++) {
        void *result;
        pthread_join(threads[i], &result);
        n_bad += (long)result != i + 1;
    }
    puts(n_bad ? "bad" : "good");
    return n_bad != 0;
}
