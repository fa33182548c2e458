/* what: threads call many small functions and check what they return, until a line is read; one more reads the clock all the time
 * build: -O2 -pthread -fno-inline
 * traits: unordered
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KINDS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define TENS(X, n) X(n, 0) X(n, 1) X(n, 2) X(n, 3) X(n, 4) X(n, 5) X(n, 6) X(n, 7) X(n, 8) X(n, 9)

#define FUNCTION(kind, n)                                                                                              \
    __attribute__((noipa)) long f_##kind##_##n(long a, long b) {                                                        \
        long x[4] = {a, b, a ^ b, a + kind};                                                                            \
        for (int i = 0; i < (int)(a & 3); i++)                                                                          \
            x[i] += x[(i + 1) & 3] * (n + 3);                                                                           \
        return kind % 3 == 0 ? x[b & 3] : kind % 3 == 1 ? a * (kind + 1) + b * (n + 2) : x[0] + x[3] + n;               \
    }
#define ALL(kind) TENS(FUNCTION, kind)
KINDS(ALL)

typedef long (*function)(long, long);
#define NAME(kind, n) f_##kind##_##n,
#define NAMES(kind) TENS(NAME, kind)
static const function functions[] = {KINDS(NAMES)};
#define COUNT (sizeof functions / sizeof *functions)

static volatile int is_over;
static long expected[COUNT][64];
static long gap_ns;

static long ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void *hammer(void *first) {
    long wrong = 0, calls = 0;
    while (!is_over)
        for (size_t at = (size_t)first; at < (size_t)first + COUNT; at++, calls++) {
            size_t index = at % COUNT, round = calls & 63;
            wrong += functions[index](round, round >> 2) != expected[index][round];
        }
    long *result = malloc(2 * sizeof *result);
    result[0] = wrong, result[1] = calls;
    return result;
}

static void *watch(void *unused) {
    long before = ns();
    while (!is_over) {
        long now = ns();
        if (now - before > gap_ns)
            gap_ns = now - before;
        before = now;
    }
    return unused;
}

int main(int argc, char **argv) {
    int n_threads = argc > 1 ? atoi(argv[1]) : 2;
    pthread_t threads[64], watching;
    char line[64] = "";
    for (size_t index = 0; index < COUNT; index++)
        for (long round = 0; round < 64; round++)
            expected[index][round] = functions[index](round, round >> 2);
    for (long at = 0; at < n_threads; at++)
        pthread_create(&threads[at], NULL, hammer, (void *)(at * 7));
    if (argc > 2)
        pthread_create(&watching, NULL, watch, NULL);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n")) {
        printf("gap %ld\n", gap_ns);
        gap_ns = 0;
        fflush(stdout);
    }
    is_over = 1;
    long wrong = 0;
    for (int at = 0; at < n_threads; at++) {
        long *result;
        pthread_join(threads[at], (void **)&result);
        wrong += result[0];
        free(result);
    }
    printf("wrong %ld\n", wrong);
    return wrong != 0;
}
