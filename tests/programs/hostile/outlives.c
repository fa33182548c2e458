/* A task that shares the memory and outlives its process.
 *
 * Argument: how the process ends. `exit` or `killed`; `vfork`: it is killed while it waits for the task; `execve`: it goes
 * on as another program. The task writes when it is done.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char stack[65536] __attribute__((aligned(64)));
static pid_t process;
static int ends[2];

__attribute__((noinline)) void turn(void) { __asm__ volatile("" ::: "memory"); }

static int outlive(void *argument)
{
    char byte;
    if (*(int *)argument)
        kill(process, SIGKILL);
    close(ends[1]);
    while (read(ends[0], &byte, 1) > 0)
        continue;
    usleep(300000);
    for (int i = 0; i < 1000; i++)
        turn();
    return write(1, "done\n", 5) != 5;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "exit";
    int is_waiting = strcmp(how, "vfork") == 0;
    process = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return 1;
    clone(outlive, stack + sizeof stack, CLONE_VM | (is_waiting ? CLONE_VFORK : 0) | SIGCHLD, &is_waiting);
    for (int i = 0; i < 10; i++)
        turn();
    if (strcmp(how, "execve") == 0)
        execl("/bin/true", "true", NULL);
    if (strcmp(how, "killed") == 0)
        raise(SIGKILL);
    _exit(5);
}
