/* what: each thread waits in another system call for SECONDS (the argument), or for input; says how that ended
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double seconds;
static atomic_int n_waiting;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static struct timespec duration(void)
{
    struct timespec time = {(time_t)seconds, (long)(1e9 * (seconds - (long)seconds))};
    return time;
}

static long wait_nanosleep(void)
{
    struct timespec time = duration();
    return nanosleep(&time, NULL);
}

static long wait_poll(void)
{
    return poll(NULL, 0, (int)(1000 * seconds));
}

static long wait_select(void)
{
    struct timeval time = {(time_t)seconds, (long)(1e6 * (seconds - (long)seconds))};
    return select(0, NULL, NULL, NULL, &time);
}

static long wait_futex(void)
{
    static int word;
    struct timespec time = duration();
    long result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, NULL, 0);
    return result == -1 && errno == ETIMEDOUT ? 0 : result;
}

static long wait_read(void)
{
    char byte = 0;
    return read(STDIN_FILENO, &byte, 1) == 1 && byte == 'x' ? 0 : -1;
}

static long wait_epoll(void)
{
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN}, got;
    int ends[2];
    if (pipe(ends) || epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event))
        return -1;
    return epoll_wait(epoll, &got, 1, -1) == 0 ? 0 : -1;
}

static void nothing(int signal)
{
    (void)signal;
}

static long wait_suspended(void)
{
    sigset_t mask;
    sigfillset(&mask);
    sigdelset(&mask, SIGUSR2);
    return sigsuspend(&mask) == -1 && errno == EINTR ? 0 : -1;
}

static struct wait {
    const char *name;
    long (*wait)(void);
    int is_timed;
    pthread_t thread;
    long result;
    int error;
    double took;
} waits[] = {
    {.name = "nanosleep", .wait = wait_nanosleep, .is_timed = 1},
    {.name = "poll", .wait = wait_poll, .is_timed = 1},
    {.name = "select", .wait = wait_select, .is_timed = 1},
    {.name = "futex", .wait = wait_futex, .is_timed = 1},
    {.name = "read", .wait = wait_read},
    {.name = "sigsuspend", .wait = wait_suspended},
    {.name = "epoll_wait", .wait = wait_epoll},
};

static void *run(void *argument)
{
    struct wait *wait = argument;
    double start = now();
    n_waiting++;
    wait->result = wait->wait();
    wait->error = errno;
    wait->took = now() - start;
    return NULL;
}

int main(int argc, char **argv)
{
    const int n = sizeof waits / sizeof *waits, epoll = n - 1;
    int is_bad = 0;
    seconds = argc > 1 ? atof(argv[1]) : 1;
    signal(SIGUSR2, nothing);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    for (int i = 0; i < n; i++)
        pthread_create(&waits[i].thread, NULL, run, &waits[i]);
    while (n_waiting < n)
        usleep(1000);
    puts("ready");
    fflush(stdout);
    for (int i = 0; i < epoll; i++) {
        if (waits[i].wait == wait_suspended)
            pthread_kill(waits[i].thread, SIGUSR2);
        pthread_join(waits[i].thread, NULL);
        int is_long = waits[i].is_timed && (waits[i].took < seconds || waits[i].took > 1.5 * seconds);
        printf("%s %ld", waits[i].name, waits[i].result);
        if (waits[i].result)
            printf(", %s", strerror(waits[i].error));
        if (is_long)
            printf(", took %.3f s", waits[i].took);
        puts("");
        is_bad |= waits[i].result != 0 || is_long;
    }
    /* Nothing comes: it waits still, unless it was disturbed. */
    is_bad |= pthread_tryjoin_np(waits[epoll].thread, NULL) != EBUSY;
    puts(is_bad ? "bad" : "good");
    return is_bad;
}
