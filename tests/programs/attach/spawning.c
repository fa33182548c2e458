/* what: forks, spawns and waits for children over and over, until SIGTERM; with an argument it becomes itself anew
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
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    signal(SIGTERM, end);
    sigprocmask(SIG_UNBLOCK, &term, NULL);
    if (argc > 1 && strcmp(argv[1], "again-bad") == 0)
        n_bad = 1;
    if (argc < 2 || strcmp(argv[1], "again-and-again") == 0) {
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
        if (argc > 1 && i > 20) {
            /* A SIGTERM must neither be forgotten with this program nor meet the next one without its handler. */
            sigprocmask(SIG_BLOCK, &term, NULL);
            if (!is_over)
                execl("/proc/self/exe", argv[0], n_bad ? "again-bad" : "again", (char *)NULL);
            sigprocmask(SIG_UNBLOCK, &term, NULL);
        }
    }
    puts(n_bad ? "bad" : "good");
    return n_bad != 0;
}
