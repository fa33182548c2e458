/* what: filters that fork's children and the next program inherit
 * build: -O1
 * status: 7
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/wait.h>
#include "filter.h"
#include "note.h"

int main(int argc, char **argv)
{
    if (argc > 1) {
        note("next program", raw(SYS_getppid, 0, 0, 0, 0));
        note("and its own", filter_one(SYS_getpgrp, SECCOMP_RET_ERRNO | 32));
        note("refused", raw(SYS_getpgrp, 0, 0, 0, 0));
        return 7;
    }
    char *next[] = {argv[0], "again", NULL};
    int status;
    note("installed", filter_one(SYS_getppid, SECCOMP_RET_ERRNO | 31));
    pid_t child = fork();
    if (child == 0) {
        note("child", raw(SYS_getppid, 0, 0, 0, 0));
        execv(argv[0], next);
        _exit(9);
    }
    if (waitpid(child, &status, 0) != child)
        return 1;
    note("status", WEXITSTATUS(status));
    note("parent", raw(SYS_getppid, 0, 0, 0, 0));
    execv(argv[0], next);
    return 1;
}
