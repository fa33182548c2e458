/* what: posix_spawn with attributes: masks, defaults, groups, sessions, file actions, searching the path, and errors
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int be_child(const char *name)
{
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    struct sigaction one, other;
    sigaction(SIGUSR1, NULL, &one);
    sigaction(SIGUSR2, NULL, &other);
    char folder[200] = "";
    if (getcwd(folder, sizeof folder) == NULL)
        return 1;
    printf("%s: blocked %d %d, ignored %d %d, leader %d, session %d, folder %s\n", name, sigismember(&mask, SIGUSR1),
           sigismember(&mask, SIGTERM), one.sa_handler == SIG_IGN, other.sa_handler == SIG_IGN, getpgrp() == getpid(),
           getsid(0) == getpid(), strcmp(folder, "/") == 0 ? folder : "other");
    char line[20] = "";
    if (fgets(line, sizeof line, stdin) != NULL)
        printf("read %s\n", line);
    fprintf(stderr, "to stderr\n");
    return 42;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return be_child(argv[1]);
    setvbuf(stdout, NULL, _IONBF, 0);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, &old);
    static const short kinds[] = {0, POSIX_SPAWN_SETSIGMASK, POSIX_SPAWN_SETSIGDEF, POSIX_SPAWN_SETPGROUP, POSIX_SPAWN_SETSID,
                                  POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_RESETIDS, POSIX_SPAWN_USEVFORK};
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        posix_spawnattr_t attributes;
        posix_spawn_file_actions_t actions;
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, kinds[i]);
        posix_spawnattr_setsigmask(&attributes, &old);
        sigset_t defaults;
        sigemptyset(&defaults);
        sigaddset(&defaults, SIGUSR1);
        posix_spawnattr_setsigdefault(&attributes, &defaults);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, 1, 2);
        if (i % 2)
            posix_spawn_file_actions_addchdir_np(&actions, "/");
        char name[20];
        snprintf(name, sizeof name, "kind %u", i);
        char *arguments[] = {argv[0], name, NULL};
        pid_t pid;
        int status = 0, result = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, arguments, environ);
        if (result == 0)
            waitpid(pid, &status, 0);
        printf("spawned %d, exited %d\n", result, WEXITSTATUS(status));
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attributes);
    }
    char *arguments[] = {"true", NULL};
    pid_t pid;
    int status = 0, result = posix_spawnp(&pid, "true", NULL, NULL, arguments, environ);
    waitpid(pid, &status, 0);
    printf("by the path: %d %d\n", result, status);
    printf("not there: %s\n", strerrorname_np(posix_spawn(&pid, "/no/such/program", NULL, NULL, arguments, environ)));
    printf("no program: %s\n", strerrorname_np(posix_spawn(&pid, "/etc/passwd", NULL, NULL, arguments, environ)));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/no/such/file", O_RDONLY, 0);
    printf("bad action: %s\n", strerrorname_np(posix_spawnp(&pid, "true", &actions, NULL, arguments, environ)));
    printf("nobody left: %d\n", waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
    return 0;
}
