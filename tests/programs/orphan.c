/* what: an orphan, the orphan's child, and what it goes on with, each ask who their parent is
 * build: -O1
 * needs: adopter
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int out;

static void say(const char *what, long value)
{
    dprintf(out, "%s %ld\n", what, value);
}

static void wait_for_orphanage(pid_t parent)
{
    while (getppid() == parent)
        usleep(1000);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        out = atoi(argv[1]);
        say("after execution", getppid());
        return 0;
    }
    int ends[2];
    char text[512];
    if (pipe(ends))
        return 1;
    out = ends[1];
    pid_t first = fork();
    if (first == 0) {
        pid_t parent = getpid();
        if (fork() != 0)
            _exit(0);
        wait_for_orphanage(parent);
        say("orphan", getppid());
        pid_t self = getpid(), child = fork();
        if (child == 0) {
            say("its child knows it", getppid() == self);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        char number[16];
        snprintf(number, sizeof number, "%d", out);
        execl("/proc/self/exe", argv[0], number, (char *)NULL);
        _exit(1);
    }
    close(ends[1]);
    waitpid(first, NULL, 0);
    ssize_t size;
    while ((size = read(ends[0], text, sizeof text)) > 0)
        if (write(1, text, (size_t)size) != size)
            return 2;
    /* Who asks for orphans gets them, whoever else does. */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t self = getpid(), second = fork();
    if (second == 0) {
        pid_t parent = getpid();
        if (fork() != 0)
            _exit(0);
        wait_for_orphanage(parent);
        printf("adopted %d\n", getppid() == self);
        fflush(stdout);
        _exit(0);
    }
    while (wait(NULL) > 0)
        ;
    puts("good");
    return 0;
}
