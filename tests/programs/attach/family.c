/* what: three workers that make children in every way and wait for them, until SIGTERM; some children make children
 *       of their own, and one worker becomes itself anew again and again
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_WORKERS = 3, N_WAYS = 7 };

extern char **environ;
static volatile sig_atomic_t is_over;
static int n_bad;

static void end(int signal)
{
    (void)signal;
    is_over = 1;
}

/* Child, grandchildren: status 5. */
static void live(void)
{
    for (int i = 0; i < 2; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            usleep(500);
            _exit(3 + i);
        }
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 3 + i)
            _exit(1);
    }
    _exit(5);
}

static void *fork_in_a_thread(void *unused)
{
    (void)unused;
    pid_t child = fork();
    if (child == 0)
        live();
    return (void *)(long)child;
}

static pid_t make(int way, int *expected)
{
    char *words[] = {"/bin/sh", "-c", "/bin/true; exit 4", NULL};
    pid_t child;
    pthread_t thread;
    void *result;
    *expected = 5;
    switch (way) {
    case 0:
        if ((child = fork()) == 0)
            live();
        return child;
    case 1:
        *expected = 4;
        return posix_spawn(&child, words[0], NULL, NULL, words, environ) ? -1 : child;
    case 2:
        *expected = 4;
        if ((child = vfork()) == 0) {
            execv(words[0], words);
            _exit(1);
        }
        return child;
    case 3:
        if ((child = vfork()) == 0)
            _exit(5);
        return child;
    case 4:
        *expected = 4;
        if ((child = fork()) == 0) {
            execv(words[0], words);
            _exit(1);
        }
        return child;
    case 5:
        /* Its end is told by no signal: to a tracer it looks like a thread. */
        if ((child = syscall(SYS_clone, 0, 0, 0, 0, 0)) == 0)
            live();
        return child;
    default:
        if (pthread_create(&thread, NULL, fork_in_a_thread, NULL) || pthread_join(thread, &result))
            return -1;
        return (pid_t)(long)result;
    }
}

static int work(int is_changing, int way, char **argv)
{
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    signal(SIGTERM, end);
    sigprocmask(SIG_UNBLOCK, &term, NULL);
    for (; !is_over; way = (way + 1) % N_WAYS) {
        int status = -1, expected;
        /* Children of the program's own would take the signal for theirs. */
        sigprocmask(SIG_BLOCK, &term, NULL);
        pid_t child = make(way, &expected), waited;
        while ((waited = waitpid(child, &status, __WALL)) < 0 && errno == EINTR)
            ;
        if (waited != child || !WIFEXITED(status) || WEXITSTATUS(status) != expected) {
            printf("bad: way %d, child %d, waited %d, status %#x\n", way, child, waited, status);
            fflush(stdout);
            n_bad++;
        }
        if (is_changing && way == N_WAYS - 1 && !is_over && n_bad == 0)
            execl("/proc/self/exe", argv[0], "again", (char *)NULL);
        sigprocmask(SIG_UNBLOCK, &term, NULL);
    }
    return n_bad != 0;
}

int main(int argc, char **argv)
{
    pid_t workers[N_WORKERS];
    sigset_t term;
    int number;
    if (argc > 1 && strcmp(argv[1], "again") == 0)
        return work(1, 0, argv);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    /* They are made when the program is told to, so that they are made while somebody watches. */
    puts("ready");
    fflush(stdout);
    if (argc > 1 && getchar() != 'g')
        return 1;
    for (int i = 0; i < N_WORKERS; i++)
        if ((workers[i] = fork()) == 0)
            return work(i == 0, i * 2, argv);
    sigwait(&term, &number);
    for (int i = 0; i < N_WORKERS; i++) {
        int status = -1;
        kill(workers[i], SIGTERM);
        if (waitpid(workers[i], &status, 0) != workers[i] || status != 0) {
            printf("bad: worker %d, status %#x\n", i, status);
            n_bad++;
        }
    }
    puts(n_bad ? "bad" : "good");
    return n_bad != 0;
}
