/* A tree of processes made in every way, at random; each says who it is, who made it and how it will end. Parents wait for
 * their children, or for none, or end at once. Arguments: a number to begin with, how deep the tree is, who made this one;
 * with TREE_KILLS in the environment some are killed by who made them.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static unsigned long state;
static int depth, kills;

static unsigned int draw(unsigned int limit)
{
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned int)(state >> 33) % limit;
}

static void be(unsigned long seed, int levels, pid_t maker) __attribute__((noreturn));

static void *fork_here(void *child)
{
    unsigned long seed = state * 31 + 1;
    pid_t self = getpid();
    if ((*(pid_t *)child = fork()) == 0)
        be(seed, depth - 1, self);
    return NULL;
}

static void make_child(void)
{
    char *arguments[] = {"tree", NULL, NULL, NULL, NULL};
    pid_t child = 0, self = getpid();
    pthread_t thread;
    if (asprintf(&arguments[1], "%lu", state * 31 + 1) < 0 || asprintf(&arguments[2], "%d", depth - 1) < 0 ||
        asprintf(&arguments[3], "%d", self) < 0)
        _exit(99);
    switch (draw(6)) {
    case 0:
        fork_here(&child);
        break;
    case 1:
        if (pthread_create(&thread, NULL, fork_here, &child) || pthread_join(thread, NULL))
            _exit(99);
        break;
    case 2:
        if ((child = vfork()) == 0) {
            execv("/proc/self/exe", arguments);
            _exit(99);
        }
        break;
    case 3:
        if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ))
            _exit(99);
        break;
    case 4: /* In between is one that does nothing but make this one. */
        if ((child = fork()) == 0) {
            dprintf(1, "%d %d 0\n", getpid(), self);
            self = getpid();
            if (fork() == 0)
                be(state * 31 + 1, depth - 1, self);
            _exit(0);
        }
        break;
    case 5: /* The same one goes on as another program. */
        if ((child = fork()) == 0) {
            execv("/proc/self/exe", arguments);
            _exit(99);
        }
        break;
    }
    for (int i = 1; i < 4; i++)
        free(arguments[i]);
    if (kills && child > 0 && draw(3) == 0) {
        usleep(draw(8000));
        dprintf(1, "%d killed\n", child);
        kill(child, SIGKILL);
    }
}

static void be(unsigned long seed, int levels, pid_t maker)
{
    state = seed;
    depth = levels;
    int code = (int)draw(90) + 1;
    dprintf(1, "%d %d %d\n", getpid(), maker, code);
    for (unsigned int n = levels > 0 ? draw(4) + (levels > 3) : 0; n > 0; n--) {
        make_child();
        if (draw(3) == 0)
            usleep(draw(3000));
    }
    switch (draw(3)) {
    case 0:
        while (wait(NULL) > 0)
            ;
        break;
    case 1:
        usleep(draw(5000));
        break;
    }
    _exit(code);
}

int main(int argc, char **argv)
{
    kills = getenv("TREE_KILLS") != NULL;
    be(strtoul(argv[1], NULL, 10), atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 0);
}
