/* System calls of all kinds, by two threads, a child and a signal handler; what each returned is written down.
 *
 * Argument: a file. A line for each call: which thread, its name, its first argument, its result (-errno where it failed), in the order in
 * which the thread made them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char told[3][1 << 20];
static size_t n_told[3];
static __thread int who;

#define MADE(name, ...) made(#name, SYS_##name, __VA_ARGS__)

static long made(const char *name, long number, long a, long b, long c, long d)
{
    long result = syscall(number, a, b, c, d);
    if (result < 0)
        result = -errno;
    n_told[who] += (size_t)sprintf(told[who] + n_told[who], "%d %s %ld %ld\n", who, name, a, result);
    return result;
}

static volatile sig_atomic_t n_handled;

static void handle(int signal)
{
    (void)signal;
    n_handled++;
    MADE(getppid, 0, 0, 0, 0);
}

static void *run(void *file)
{
    (void)file;
    who = 1;
    for (long number = 0; number < 3000; number++) {
        MADE(close, 1000 + number, 0, 0, 0);
        if (number % 100 == 0)
            MADE(sched_yield, 0, 0, 0, 0);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    (void)argc;
    char text[64];
    pthread_t thread;
    struct sigaction action = {.sa_handler = handle};
    struct timespec little = {0, 30000000};
    sigaction(SIGALRM, &action, NULL);
    pthread_create(&thread, NULL, run, NULL);
    for (int turn = 0; turn < 200; turn++) {
        MADE(openat, AT_FDCWD, (long)"/no/such/file", O_RDONLY, 0);
        long file = MADE(openat, AT_FDCWD, (long)"/proc/self/comm", O_RDONLY | O_CLOEXEC, 0);
        MADE(read, file, (long)text, sizeof text, 0);
        MADE(read, file, 8, 1, 0);
        MADE(close, file, 0, 0, 0);
        MADE(close, file, 0, 0, 0);
        MADE(getcwd, (long)text, sizeof text, 0, 0);
        long memory = MADE(mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS);
        if (memory > 0)
            munmap((void *)memory, 4096);
    }
    for (int turn = 0; turn < 8; turn++) {
        struct itimerval soon = {{0, 0}, {0, 3000}};
        action.sa_flags = turn % 2 ? SA_RESTART : 0;
        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &soon, NULL);
        MADE(nanosleep, (long)&little, 0, 0, 0);
    }
    pthread_join(thread, NULL);
    long child = fork();
    if (child == 0) {
        who = 2;
        for (int number = 0; number < 50; number++)
            MADE(dup, 900 + number, 0, 0, 0);
        int file = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0644);
        if (write(file, told[2], n_told[2]) < 0)
            _exit(1);
        _exit(0);
    }
    waitpid((pid_t)child, NULL, 0);
    int file = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0644);
    for (int one = 0; one < 2; one++)
        if (write(file, told[one], n_told[one]) < 0)
            return 1;
    return n_handled != 8;
}
