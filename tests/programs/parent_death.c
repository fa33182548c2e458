/* what: PR_SET_PDEATHSIG: the signal comes when the parent ends, is cleared by fork, kept by execve; orphans and their new parent
 * build: -O1
 * traits: unordered
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int wait_for_death(const char *who)
{
    sigset_t set;
    int number = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    prctl(PR_GET_PDEATHSIG, &number, 0, 0, 0);
    dprintf(1, "%s: asked for %d\n", who, number);
    if (write(9, "x", 1) != 1)
        return 1;
    int got = sigwaitinfo(&set, NULL);
    dprintf(1, "%s: got %d, new parent %d\n", who, got, getppid() == atoi(getenv("REAPER")));
    return 0;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return wait_for_death("after execve");
    char pid_text[20];
    snprintf(pid_text, sizeof pid_text, "%d", (int)getpid());
    setenv("REAPER", pid_text, 1);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int round = 0; round < 2; round++) {
        int tube[2], status;
        char byte;
        if (pipe(tube) != 0 || dup2(tube[1], 9) != 9)
            return 1;
        pid_t middle = fork();
        if (middle == 0) {
            prctl(PR_SET_PDEATHSIG, SIGUSR2, 0, 0, 0);
            if (fork() == 0) {
                int number = -1;
                prctl(PR_GET_PDEATHSIG, &number, 0, 0, 0);
                dprintf(1, "cleared by fork %d\n", number);
                prctl(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
                if (round == 1)
                    execl("/proc/self/exe", "parent_death", "again", (char *)NULL);
                _exit(wait_for_death("child"));
            }
            if (read(tube[0], &byte, 1) != 1)
                _exit(1);
            _exit(4);
        }
        waitpid(middle, &status, 0);
        printf("middle %d\n", WEXITSTATUS(status));
        fflush(stdout);
        pid_t orphan = waitpid(-1, &status, 0);
        printf("orphan waited for %d, %d\n", orphan > 0, WEXITSTATUS(status));
        fflush(stdout);
        close(tube[0]);
        close(tube[1]);
    }
    return 0;
}
