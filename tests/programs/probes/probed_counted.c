/* Threads call 512 small functions of 32 kinds all the time between two lines, check what these return, and count the calls
   of each kind. Says how many results were wrong, and these counts. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_THREADS 64
#define N_KINDS 32
#define EACH(X, kind) X(kind, 0) X(kind, 1) X(kind, 2) X(kind, 3) X(kind, 4) X(kind, 5) X(kind, 6) X(kind, 7)           \
    X(kind, 8) X(kind, 9) X(kind, 10) X(kind, 11) X(kind, 12) X(kind, 13) X(kind, 14) X(kind, 15)
#define KINDS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)                  \
    X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)

/* Of some there is no room for a jump but with what is in front of their ends, others have two ends, or a loop. */
#define FUNCTION(kind, n)                                                                                              \
    __attribute__((noipa)) long f_##kind##_##n(long a, long b)                                                         \
    {                                                                                                                  \
        if (kind % 4 == 0) return a;                                                                                   \
        if (kind % 4 == 1) return a > b ? a * (n + 3) : b - kind;                                                      \
        long sum = b + kind;                                                                                           \
        if (kind % 4 == 2) {                                                                                           \
            for (long at = 0; at < (a & 3); at++) sum = sum * 3 + n;                                                   \
            return sum;                                                                                                \
        }                                                                                                              \
        if (a & 1) return sum ^ n;                                                                                     \
        return sum + a * n;                                                                                            \
    }
#define ALL(kind) EACH(FUNCTION, kind)
KINDS(ALL)

typedef long (*function)(long, long);
#define NAME(kind, n) f_##kind##_##n,
#define NAMES(kind) EACH(NAME, kind)
static const function functions[] = {KINDS(NAMES)};
#define COUNT (sizeof functions / sizeof *functions)

static long expected[COUNT][64];
static volatile int is_halted = 1, is_over;
static pthread_barrier_t begins, ends;

struct counts { long wrong, calls[N_KINDS]; };

static void *call_all(void *own)
{
    struct counts *counts = own;
    long turn = 0;
    for (;;) {
        pthread_barrier_wait(&begins);
        if (is_over) return NULL;
        for (; !is_halted; turn++)
            for (size_t at = 0; at < COUNT; at++) {
                long round = (turn + (long)at) & 63;
                counts->wrong += functions[at](round, round >> 2) != expected[at][round];
                counts->calls[at / (COUNT / N_KINDS)]++;
            }
        pthread_barrier_wait(&ends);
    }
}

int main(int argc, char **argv)
{
    int n_threads = argc > 1 ? atoi(argv[1]) : 2;
    pthread_t threads[MAX_THREADS];
    static struct counts counts[MAX_THREADS];
    char line[64];
    for (size_t at = 0; at < COUNT; at++)
        for (long round = 0; round < 64; round++) expected[at][round] = functions[at](round, round >> 2);
    pthread_barrier_init(&begins, NULL, n_threads + 1);
    pthread_barrier_init(&ends, NULL, n_threads + 1);
    for (int at = 0; at < n_threads; at++) pthread_create(&threads[at], NULL, call_all, &counts[at]);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        is_halted = 0;
        pthread_barrier_wait(&begins);
        if (fgets(line, sizeof line, stdin) == NULL) exit(1);
        is_halted = 1;
        pthread_barrier_wait(&ends);
        long wrong = 0, calls[N_KINDS] = {0};
        for (int at = 0; at < n_threads; at++) {
            wrong += counts[at].wrong;
            for (int kind = 0; kind < N_KINDS; kind++) calls[kind] += counts[at].calls[kind];
        }
        printf("%ld", wrong);
        for (int kind = 0; kind < N_KINDS; kind++) printf(" %ld", calls[kind]);
        puts("");
        fflush(stdout);
    }
    is_over = 1;
    pthread_barrier_wait(&begins);
    for (int at = 0; at < n_threads; at++) pthread_join(threads[at], NULL);
    return 0;
}
