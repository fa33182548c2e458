/* what: stopped and continued in the middle of nanosleep, poll, futex and read: restarted with the time that is left
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int tube[2];
static volatile int cell, handled;

static void handler(int number) { handled = number; }

static char state_of(pid_t pid)
{
    char name[40], text[300];
    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(name, "r");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[size] = '\0';
    if (file)
        fclose(file);
    char *end = strrchr(text, ')');
    return end && end[1] ? end[2] : '?';
}

/* The kernel's number of the call that a process waits in; -1 while it runs. */
static int call_of(pid_t pid)
{
    char name[40], text[100] = "";
    snprintf(name, sizeof name, "/proc/%d/syscall", (int)pid);
    FILE *file = fopen(name, "r");
    if (file == NULL || fgets(text, sizeof text, file) == NULL)
        text[0] = '\0';
    if (file)
        fclose(file);
    return text[0] >= '0' && text[0] <= '9' ? atoi(text) : -1;
}

/* The process waits in `call`, or, if that was done meanwhile, for its helper. */
static void await(pid_t pid, char state, int call)
{
    while (state_of(pid) != state || (call >= 0 && call_of(pid) != call && call_of(pid) != SYS_wait4))
        usleep(200);
}

/* A child stops and continues its parent once it waits in `call`, and then does what lets the call end. */
static pid_t start_helper(int call, int again, int feed)
{
    pid_t parent = getpid(), child = fork();
    if (child != 0)
        return child;
    await(parent, 'S', call);
    kill(parent, SIGSTOP);
    await(parent, 'T', -1);
    kill(parent, SIGCONT);
    await(parent, 'S', again);
    if (feed && write(tube[1], "x", 1) != 1)
        _exit(1);
    _exit(0);
}

static void finish(const char *what, pid_t helper, long result, int error, int64_t milliseconds, int64_t least)
{
    int status;
    while (waitpid(helper, &status, 0) < 0 && errno == EINTR)
        ;
    printf("%s: %ld %s, helper %d, long enough %d, not for ever %d\n", what, result, result < 0 ? strerrorname_np(error) : "",
           status, milliseconds >= least, milliseconds < 10000);
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    if (pipe(tube) != 0)
        return 1;
    enum { LEAST = 150 };
    for (int round = 0; round < 2; round++) {
        /* What a handler ends must not end by itself before, however late the helper comes. */
        const int limit = round ? 20000 : LEAST;
        const struct timespec pause = {limit / 1000, limit % 1000 * 1000000};
        if (round == 1)                      /* a handler of SIGCONT: what restarts changes */
            sigaction(SIGCONT, &(struct sigaction){.sa_handler = handler, .sa_flags = SA_RESTART}, NULL);
        int64_t start = now();
        pid_t helper = start_helper(SYS_clock_nanosleep, round ? SYS_wait4 : SYS_restart_syscall, 0);
        struct timespec rest = {0, 0};
        long result = clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, &rest);
        finish("sleep", helper, -result, (int)result, round ? 0 : now() - start, round ? 0 : LEAST);
        if (round)
            printf("rest %d\n", rest.tv_sec > 0);

        start = now();
        helper = start_helper(SYS_poll, round ? SYS_wait4 : SYS_restart_syscall, 0);
        struct pollfd wanted = {.fd = tube[0], .events = POLLIN};
        result = poll(&wanted, 1, limit);
        finish("poll", helper, result, errno, round ? 0 : now() - start, round ? 0 : LEAST);

        start = now();
        helper = start_helper(SYS_futex, round ? SYS_wait4 : SYS_restart_syscall, 0);
        result = syscall(SYS_futex, &cell, FUTEX_WAIT, 0, &pause, NULL, 0);
        finish("futex", helper, result, errno, round ? 0 : now() - start, round ? 0 : LEAST);

        helper = start_helper(SYS_read, SYS_read, 1);
        char byte;
        result = read(tube[0], &byte, 1);
        finish("read", helper, result, errno, 0, 0);

        int queue = epoll_create1(0);
        struct epoll_event event = {.events = EPOLLIN};
        epoll_ctl(queue, EPOLL_CTL_ADD, tube[0], &event);
        helper = start_helper(SYS_epoll_wait, SYS_wait4, 0);
        result = epoll_wait(queue, &event, 1, 20000);   /* EINTR after a stop, handler or not */
        finish("epoll", helper, result, errno, 0, 0);
        close(queue);
        printf("handled %d\n", handled);
    }
    return 0;
}
