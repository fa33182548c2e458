/* Runs code that it did not run before when it is told to: a line with a number from 10 to 29 calls the function of that
 * number, in front of it `t` in a thread of its own, `f` in a child; `s` spins for as many thousand turns. Each line is
 * answered when that is done. At the end of its input it exits with status 3. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUNCTION(n)                                                                                                    \
    __attribute__((noinline)) long found_##n(long x)                                                                   \
    {                                                                                                                  \
        for (long i = 0; i < 10 + n; i++)                                                                              \
            x = x & 1 ? x * n + i : x + 3;                                                                             \
        return x;                                                                                                      \
    }
#define TEN(n)                                                                                                         \
    FUNCTION(n##0) FUNCTION(n##1) FUNCTION(n##2) FUNCTION(n##3) FUNCTION(n##4)                                         \
    FUNCTION(n##5) FUNCTION(n##6) FUNCTION(n##7) FUNCTION(n##8) FUNCTION(n##9)
TEN(1)
TEN(2)

#define NAMES(n)                                                                                                       \
    found_##n##0, found_##n##1, found_##n##2, found_##n##3, found_##n##4, found_##n##5, found_##n##6, found_##n##7,    \
        found_##n##8, found_##n##9
static long (*const functions[])(long) = {NAMES(1), NAMES(2)};

static volatile long sum;

static void *call(void *number)
{
    sum += functions[(long)number - 10](sum);
    return NULL;
}

__attribute__((noinline)) static void spin(long thousands)
{
    for (long i = 0; i < thousands * 1000; i++)
        sum += i;
}

int main(void)
{
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        char how = line[0];
        long number = atol(how >= '0' && how <= '9' ? line : line + 1);
        if (how == 's') {
            spin(number);
        } else if (number >= 10 && number < 30) {
            pthread_t thread;
            if (how == 't') {
                if (pthread_create(&thread, NULL, call, (void *)number) == 0)
                    pthread_join(thread, NULL);
            } else if (how == 'f') {
                if (fork() == 0) {
                    call((void *)number);
                    _exit(0);
                }
                wait(NULL);
            } else {
                call((void *)number);
            }
        }
        printf("%s", line);
        fflush(stdout);
    }
    return 3;
}
