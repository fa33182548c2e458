/* what: vfork inside vfork's child, four deep, with memory shared, exec at the bottom and failing; signals wait for the parent
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "note.h"

static volatile int depth, order[40], n;

static void handler(int number) { note("handler", number); }

static __attribute__((noinline)) int go_down(int level)
{
    int status;
    pid_t child = vfork();
    if (child == 0) {
        order[n++] = level;
        if (level > 0)
            _exit(go_down(level - 1) + 1);
        char *arguments[] = {"sh", "-c", "exit 10", NULL};
        execv("/no/such/program", arguments);
        order[n++] = 100 + errno;
        execv("/bin/sh", arguments);
        _exit(99);
    }
    order[n++] = 50 + level;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

int main(void)
{
    signal(SIGUSR1, handler);
    for (int i = 0; i < 4; i++) {
        n = 0;
        int result = go_down(i);
        printf("depth %d: %d:", i, result);
        for (int j = 0; j < n; j++)
            printf(" %d", order[j]);
        putchar('\n');
        fflush(stdout);
    }
    /* The child changes what the parent sees, and sends it a signal, which comes when it runs again. */
    volatile int cell = 1;
    int status;
    pid_t child = vfork();
    if (child == 0) {
        cell = 2;
        kill(getppid(), SIGUSR1);
        note("child", cell);
        _exit(3);
    }
    waitpid(child, &status, 0);
    printf("cell %d status %d\n", cell, WEXITSTATUS(status));
    fflush(stdout);
    child = vfork();
    if (child == 0)
        raise(SIGKILL);
    waitpid(child, &status, 0);
    printf("killed by %d\n", WTERMSIG(status));
    return 0;
}
