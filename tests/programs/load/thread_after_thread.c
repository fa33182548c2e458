/* what: makes threads one after the other for SECONDS (the argument); prints how many, and the longest time for one in ms
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
    const double end = now() + atof(argc > 1 ? argv[1] : "1");
    double longest = 0;
    long made = 0;
    puts("ready");
    fflush(stdout);
    for (double start = now(); start < end; made++) {
        pthread_t thread;
        int error = pthread_create(&thread, NULL, nothing, NULL);
        if (error) {
            printf("%ld: %s\n", made, strerror(error));
            return 1;
        }
        pthread_join(thread, NULL);
        const double took = now() - start;
        longest = took > longest ? took : longest;
        start += took;
    }
    printf("%ld %.0f\n", made, 1000 * longest);
    return 0;
}
