/* what: asks for the time and the processor as the vDSO answers that, from two threads and a child, and says what it was told
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *ask(void *unused)
{
    struct timespec now[20], step;
    struct timeval day;
    unsigned processor = 0;
    for (int each = 0; each < 20; each++)
        clock_gettime(each & 1 ? CLOCK_REALTIME : CLOCK_MONOTONIC, &now[each]);
    gettimeofday(&day, NULL);
    clock_getres(CLOCK_MONOTONIC, &step);
    getcpu(&processor, NULL);
    for (int each = 0; each < 20; each++)
        printf("clock_gettime %ld %ld\n", (long)now[each].tv_sec, now[each].tv_nsec);
    printf("gettimeofday %ld %ld\n", (long)day.tv_sec, (long)day.tv_usec);
    printf("time %ld\n", (long)time(NULL));
    printf("clock_getres %ld %ld\n", (long)step.tv_sec, step.tv_nsec);
    return unused;
}

int main(void)
{
    pthread_t other;
    struct timespec used;
    ask(NULL);
    pthread_create(&other, NULL, ask, NULL);
    pthread_join(other, NULL);
    fflush(stdout);
    if (!fork()) {
        ask(NULL);
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    /* No clock that the vDSO has: it makes a system call. */
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    printf("used %ld %ld\n", (long)used.tv_sec, used.tv_nsec);
    return 0;
}
