/* what: told to, makes a process that shares its memory and not its threads; both end when told once more
 * build: -O1
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int is_there, is_over;

static int share(void *unused)
{
    (void)unused;
    is_there = 1;
    while (!is_over)
        usleep(1000);
    return 9;
}

int main(void)
{
    static char stack[1 << 16] __attribute__((aligned(16)));
    int status = -1;
    puts("ready");
    fflush(stdout);
    if (getchar() != 'g')
        return 1;
    pid_t child = clone(share, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
    while (!is_there)
        usleep(1000);
    puts("shared");
    fflush(stdout);
    getchar();
    is_over = 1;
    int is_good = waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 9;
    puts(is_good ? "good" : "bad");
    return !is_good;
}
