/* what: SIGSEGV blocked: one that is sent waits, is seen and taken; a fault ends the process; threads, children and new programs inherit it
 * build: -O1 -pthread
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "note.h"

static void handler(int number)
{
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    note("handler", number);
    note("blocked there", sigismember(&mask, SIGSEGV));
}

static int is_blocked(void)
{
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    return sigismember(&mask, SIGSEGV);
}

static int is_pending(void)
{
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, SIGSEGV);
}

static void *run(void *argument)
{
    note("thread inherits", is_blocked());
    pthread_kill(pthread_self(), SIGSEGV);
    note("thread's waits", is_pending());
    return argument;
}

static int wait_for(pid_t child)
{
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

int main(int argc, char **argv)
{
    sigset_t set;
    struct timespec none = {0, 0};
    if (argc > 1) {
        note("new program inherits", is_blocked());
        return 0;
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    for (int i = 0; i < 3; i++) {
        sigprocmask(SIG_BLOCK, &set, NULL);
        kill(getpid(), SIGSEGV);
        note("waits", is_pending());
        raise(SIGUSR1);
        note("still waits", is_pending());
        if (i == 0)
            note("taken", sigtimedwait(&set, NULL, &none));
        note("then", is_pending());
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        note("unblocked", is_blocked());
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    sigset_t empty;
    sigemptyset(&empty);
    for (int i = 0; i < 2; i++) {
        kill(getpid(), SIGSEGV);
        note("sigsuspend", sigsuspend(&empty));
        note("after it", is_pending());
    }
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    pthread_join(thread, NULL);
    note("not the first thread's", is_pending());
    pid_t child = fork();
    if (child == 0) {
        note("child inherits", is_blocked());
        execl(argv[0], argv[0], "again", NULL);
        _exit(9);
    }
    note("child", wait_for(child));
    child = fork();
    if (child == 0) {
        *(volatile int *)8 = 1;
        _exit(9);
    }
    note("fault ends the child", WTERMSIG(wait_for(child)));
    return 0;
}
