/* what: forks, spawns and waits for children over and over, until SIGTERM; with the argument exec it becomes itself anew
 * build: -O1
 */
#define _GNU_SOURCE
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static volatile sig_atomic_t is_over;

static void end(int signal)
{
    (void)signal;
    is_over = 1;
}

int main(int argc, char **argv)
{
    int n_bad = 0;
    signal(SIGTERM, end);
    if (argc < 2 || strcmp(argv[1], "again") != 0) {
        puts("ready");
        fflush(stdout);
    }
    for (int i = 0; !is_over; i++) {
        int status = -1;
        pid_t child;
        if (i & 1) {
            char *words[] = {"true", NULL};
            if (posix_spawnp(&child, "true", NULL, NULL, words, environ) != 0)
                n_bad++;
        } else {
            child = fork();
            if (child == 0)
                _exit(5);
        }
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != (i & 1 ? 0 : 5))
            n_bad++;
        if (argc > 1 && i > 20)
            execl("/proc/self/exe", argv[0], "again", (char *)NULL);
    }
    puts(n_bad ? "bad" : "good");
    return n_bad != 0;
}
