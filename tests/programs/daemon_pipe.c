/* what: a daemon: double fork, setsid, closed descriptors, output through a pipe; adopted by a subreaper; then by nobody known
 * build: -O1
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void run(int with_reaper)
{
    int tube[2], status;
    if (pipe(tube) != 0)
        exit(1);
    prctl(PR_SET_CHILD_SUBREAPER, with_reaper, 0, 0, 0);
    fflush(stdout);
    pid_t self = getpid(), child = fork();
    if (child == 0) {
        pid_t first = getpid();
        int session = setsid() == getpid();
        if (fork() != 0)
            _exit(session ? 5 : 6);
        /* The daemon: it goes on when its parent is gone. */
        while (getppid() == first)
            usleep(100);
        if (chdir("/") != 0)
            _exit(1);
        int null = open("/dev/null", O_RDWR);
        for (int i = 0; i < 3; i++)
            dup2(null, i);
        FILE *out = fdopen(tube[1], "w");
        fprintf(out, "daemon: own session %d, leader %d, adopted by the first %d\n", getsid(0) != getsid(self), getsid(0) == getpid(),
                getppid() == self);
        unsigned sum = 0;
        for (unsigned i = 0; i < 50000; i++)
            sum = sum * 31 + i;
        fprintf(out, "sum %u\n", sum);
        fclose(out);
        _exit(9);
    }
    close(tube[1]);
    waitpid(child, &status, 0);
    printf("first child %d\n", WEXITSTATUS(status));
    FILE *in = fdopen(tube[0], "r");
    char line[200];
    while (fgets(line, sizeof line, in))
        fputs(line, stdout);
    fclose(in);
    pid_t last = waitpid(-1, &status, 0);
    printf("waited for the daemon %d %d\n", last > 0, last > 0 ? WEXITSTATUS(status) : 0);
}

int main(void)
{
    run(1);
    run(0);
    return 0;
}
