/* what: clone with CLONE_VFORK and a copy of the memory: the parent goes on when the child has ended or executed a program
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "note.h"

enum { TURNS = 200 };

static char stack[65536] __attribute__((aligned(64)));
static volatile int *shared;
static volatile int copied = 1, handled;
static int ends[2];

static void handler(int number)
{
    (void)number;
    handled = *shared;
}

/* Natively a waiting parent takes no signal. */
static int work(void *argument)
{
    (void)argument;
    copied = 2;
    kill(getppid(), SIGUSR1);
    for (int turn = 0; turn < TURNS; turn++) {
        ++*shared;
        sched_yield();
    }
    return 7;
}

static int execute(void *argument)
{
    char *const words[] = {argument, "reads", NULL};
    close(ends[1]);
    dup2(ends[0], 0);
    execv("/proc/self/exe", words);
    return 9;
}

static int die(void *argument)
{
    (void)argument;
    ++*shared;
    return raise(SIGKILL);
}

static int end_of(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static pid_t start(int (*child)(void *), void *argument)
{
    *shared = 0;
    return clone(child, stack + sizeof stack, CLONE_VFORK | SIGCHLD, argument);
}

int main(int count, char **words)
{
    char byte;
    if (count > 1)
        return read(0, &byte, 1) == 0 ? 5 : 6;
    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    signal(SIGUSR1, handler);
    pid_t pid = start(work, NULL);
    note("turns when the parent goes on", *shared);
    note("turns when the signal came", handled);
    note("the parent's own memory", copied);
    note("end", end_of(pid));

    struct clone_args arguments = {.flags = CLONE_VFORK, .exit_signal = SIGCHLD};
    *shared = 0;
    pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid == 0)
        _exit(work(NULL));
    note("turns by clone3", *shared);
    note("end", end_of(pid));

    /* It executes a program that ends when the parent closes a pipe: who waited for its end would wait for ever. */
    if (pipe(ends) != 0)
        return 1;
    pid = start(execute, words[0]);
    close(ends[1]);
    note("end of a program", end_of(pid));

    pid = start(die, NULL);
    note("turns of one that is killed", *shared);
    note("end", end_of(pid));
    return 0;
}
