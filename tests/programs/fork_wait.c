/* what: fork and wait: children that exit, fail, are killed, fork again; pipes between them; memory is private
 * build: -O1
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int cell = 5;

int main(void)
{
    int tube[2], status;
    if (pipe(tube) != 0)
        return 1;
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child < 0)
            return 2;
        if (child == 0) {
            cell += i;
            unsigned sum = 0;
            for (int j = 0; j < 1000; j++)
                sum = sum * 31 + (unsigned)(j ^ i);
            dprintf(tube[1], "child %d: %d %u\n", i, cell, sum);
            if (i == 3)
                raise(SIGKILL);
            if (i == 4) {
                pid_t grandchild = fork();
                if (grandchild == 0)
                    _exit(9);
                waitpid(grandchild, &status, 0);
                _exit(WEXITSTATUS(status) + 1);
            }
            exit(i);
        }
        char line[100];
        ssize_t got = read(tube[0], line, sizeof line);
        fwrite(line, 1, (size_t)got, stdout);
        if (waitpid(child, &status, 0) != child)
            return 3;
        printf("exited %d status %d signal %d\n", WIFEXITED(status), WIFEXITED(status) ? WEXITSTATUS(status) : 0,
               WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        fflush(stdout);
    }
    printf("cell %d\n", cell);
    return 0;
}
