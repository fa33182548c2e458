/* what: makes COUNT (the argument) threads one after the other; prints the longest time for one in ms
 * build: -O1 -pthread
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *nothing(void *argument)
{
    return argument;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(int argc, char **argv)
{
    const long count = argc > 1 ? atol(argv[1]) : 1;
    double longest = 0;
    puts("ready");
    fflush(stdout);
    for (long made = 0; made < count; made++) {
        const double start = now();
        pthread_t thread;
        int error = pthread_create(&thread, NULL, nothing, NULL);
        if (error) {
            printf("%ld: %s\n", made, strerror(error));
            return 1;
        }
        pthread_join(thread, NULL);
        const double took = now() - start;
        longest = took > longest ? took : longest;
    }
    printf("%.0f\n", 1000 * longest);
    return 0;
}
