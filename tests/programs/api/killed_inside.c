/* Is ended by a signal while it is in functions that call one another: killed_inside HOW. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noipa))

static int ends[2];
static const char *volatile nowhere = (const char *)8;
static void *(*volatile copies)(void *, const void *, size_t) = memcpy;

long middle(long number, const char *how);

KEPT long inner(long number, const char *how)
{
    char bytes[64];
    if (!strcmp(how, "strlen"))
        return (long)strlen(nowhere) + number;
    if (!strcmp(how, "memcpy"))
        return copies(bytes, nowhere, (size_t)number) != 0;
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "kill"))
        return kill(getpid(), SIGKILL);
    if (!strcmp(how, "spins"))
        for (;;)
            __asm__ volatile("" ::: "memory");
    if (!strcmp(how, "trap"))
        __builtin_trap();
    if (!strcmp(how, "exits"))
        _exit(3);
    if (!strcmp(how, "forks")) {
        /* The child is in all of its parent's functions: it calls others and is killed, or comes back from them. */
        int status = 0;
        for (int turn = 0; turn < 2; turn++)
            if (!fork())
                return turn ? number : middle(10, "abort");
        while (wait(&status) > 0)
            ;
        return number;
    }
    return read(ends[0], bytes, sizeof bytes) + number;
}

KEPT long middle(long number, const char *how) { return inner(number + 1, how) + 1; }

KEPT long outer(long number, const char *how) { return middle(number + 1, how) + 1; }

/* Each of its calls is open while the next ones are. */
KEPT long deep(long number)
{
    volatile long left = number;
    if (!number)
        return kill(getpid(), SIGKILL);
    return deep(number - 1) + left;
}

KEPT long quick(long number) { return number + 1; }

static void *in_thread(void *how)
{
    outer(100, how);
    return 0;
}

int main(int argc, char **argv)
{
    const char *how = argv[1];
    pthread_t thread;
    if (argc < 2 || pipe(ends))
        return 1;
    for (long number = 0; number < 100; number++)
        if (quick(number) != number + 1)
            return 2;
    if (!strcmp(how, "deep"))
        return (int)deep(argc > 2 ? atol(argv[2]) : 100);
    if (!strcmp(how, "threads")) {
        /* One waits, one runs on and on, and one ends them all. */
        pthread_create(&thread, 0, in_thread, "waits");
        pthread_create(&thread, 0, in_thread, "spins");
        puts("ready");
        fflush(stdout);
        usleep(200000);
        return (int)outer(1, "kill");
    }
    if (!strcmp(how, "leaves")) {
        /* All end without a signal. */
        pthread_create(&thread, 0, in_thread, "waits");
        usleep(200000);
        return (int)outer(1, "exits");
    }
    puts("ready");
    fflush(stdout);
    return outer(1, how) < 0;
}
