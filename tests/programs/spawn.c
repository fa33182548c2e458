/* what: vfork and exec, posix_spawn, system, popen; exit statuses and output come back; failing exec
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(void)
{
    int status;
    pid_t child;
    for (int i = 0; i < 3; i++) {
        child = vfork();
        if (child == 0) {
            execl("/bin/sh", "sh", "-c", "echo from a vfork; exit 4", NULL);
            _exit(99);
        }
        waitpid(child, &status, 0);
        printf("vfork %d\n", WEXITSTATUS(status));
        fflush(stdout);
    }
    child = vfork();
    if (child == 0) {
        execl("/no/such/program", "x", NULL);
        _exit(errno == ENOENT ? 98 : 97);
    }
    waitpid(child, &status, 0);
    printf("failing exec in a vfork %d\n", WEXITSTATUS(status));
    fflush(stdout);
    char *const arguments[] = {"echo", "from posix_spawn", NULL};
    int spawned = posix_spawn(&child, "/bin/echo", NULL, NULL, arguments, environ);
    waitpid(child, &status, 0);
    printf("posix_spawn %d\n", spawned);
    fflush(stdout);
    printf("spawn of nothing %d\n", posix_spawn(&child, "/no/such/program", NULL, NULL, arguments, environ) == ENOENT);
    fflush(stdout);
    status = system("echo from system; exit 3");
    printf("system %d\n", WEXITSTATUS(status));
    fflush(stdout);
    FILE *stream = popen("echo from popen", "r");
    char line[100] = "";
    if (fgets(line, sizeof line, stream) == NULL)
        return 1;
    printf("popen %s", line);
    printf("pclose %d\n", pclose(stream));
    printf("exec of nothing %d\n", execl("/no/such/program", "x", NULL));
    return 0;
}
