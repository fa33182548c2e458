/* what: a program of musl's libc: its start, threads with small stacks, signals, setjmp, stdio, malloc, a child
 * compiler: musl-gcc
 * build: -O1 -pthread
 * also: static -O1 -pthread -static
 * also: pie -O1 -pthread -static-pie
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static __thread int own = 5;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sum;
static sigjmp_buf back;
static volatile int handled;

static void handler(int number)
{
    handled += number;
    if (number == SIGSEGV)
        siglongjmp(back, 1);
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void *work(void *argument)
{
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&lock);
        sum += own;
        pthread_mutex_unlock(&lock);
    }
    own += (int)(long)argument;
    return (void *)(long)own;
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        printf("child %s\n", argv[1]);
        return 9;
    }
    pthread_t threads[6];
    for (long i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 6; i++) {
        void *result;
        pthread_join(threads[i], &result);
        printf("%ld ", (long)result);
    }
    printf("sum %d own %d\n", sum, own);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    raise(SIGUSR1);
    if (sigsetjmp(back, 1) == 0)
        *(volatile int *)8 = 1;
    printf("handled %d\n", handled);
    int values[500];
    for (int i = 0; i < 500; i++)
        values[i] = i * 7919 % 501;
    qsort(values, 500, sizeof *values, compare);
    char *texts[50];
    for (int i = 0; i < 50; i++) {
        texts[i] = malloc(100 + 50 * (size_t)i);
        snprintf(texts[i], 100, "%d %a %s", values[i * 10], i / 7.0, i % 2 ? "odd" : "even");
    }
    printf("%s %s\n", texts[3], texts[49]);
    for (int i = 0; i < 50; i++)
        free(texts[i]);
    struct timespec now;
    printf("clock %d\n", clock_gettime(CLOCK_MONOTONIC, &now));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", argv[0], "again", (char *)NULL);
        _exit(1);
    }
    int status;
    waitpid(child, &status, 0);
    printf("status %d\n", WEXITSTATUS(status));
    return 0;
}
