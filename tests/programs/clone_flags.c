/* what: clone with each common flag: shared files, folder, memory, parents, tids, pidfd, exit signals, and errors
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "note.h"

static char stack[65536] __attribute__((aligned(64)));
static volatile int cell, handled;
static pid_t parent_tid, child_tid;
static int extra;

static void handler(int number) { handled += number; }

static int child(void *argument)
{
    int what = (int)(intptr_t)argument;
    cell = what;
    if (chdir("/") != 0)
        return 99;
    umask(0);
    close(extra);
    return what;
}

static int report_child(void *argument)
{
    (void)argument;
    return child_tid == (pid_t)syscall(SYS_gettid) ? 11 : 12;
}

static int parent_of(void *argument) { return getppid() == (pid_t)(intptr_t)argument ? 21 : 22; }

static void run(const char *what, int flags, int number)
{
    int status = 0;
    char folder[300];
    struct sigaction action;
    cell = 0;
    umask(022);
    if (chdir("/tmp") != 0)
        return;
    signal(SIGUSR2, handler);
    extra = open("/dev/null", O_RDONLY);
    pid_t pid = clone(child, stack + sizeof stack, flags | SIGCHLD, (void *)(intptr_t)number);
    int error = errno;
    if (pid > 0)
        waitpid(pid, &status, 0);
    else
        printf("%s: %s\n", what, strerrorname_np(error));
    mode_t mask = umask(022);
    sigaction(SIGUSR2, NULL, &action);
    printf("%s: status %d cell %d folder %s umask %o file %d handler %d\n", what, WEXITSTATUS(status), cell,
           getcwd(folder, sizeof folder), mask, fcntl(extra, F_GETFD) >= 0, action.sa_handler == handler);
    close(extra);
}

int main(void)
{
    int status;
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int round = 0; round < 2; round++) {
        run("plain", 0, 1);
        run("CLONE_FS", CLONE_FS, 2);
        run("CLONE_FILES", CLONE_FILES, 2);
        run("CLONE_VM", CLONE_VM | CLONE_VFORK, 2);
        run("CLONE_SIGHAND without CLONE_VM", CLONE_SIGHAND, 4);
        run("CLONE_THREAD without CLONE_SIGHAND", CLONE_THREAD, 5);
        run("all of a program", CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_IO, 6);
    }
    pid_t pid = clone(report_child, stack + sizeof stack, CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD, NULL, &parent_tid,
                      NULL, &child_tid);
    waitpid(pid, &status, 0);
    printf("tids: parent's %d child's %d here %d\n", parent_tid == pid, WEXITSTATUS(status), child_tid);
    pid = clone(parent_of, stack + sizeof stack, CLONE_PARENT | SIGCHLD, (void *)(intptr_t)getppid());
    int mine = waitpid(pid, &status, WNOHANG);
    printf("CLONE_PARENT: not mine %d %s\n", mine, strerrorname_np(errno));
    int descriptor = -1;
    pid = clone(child, stack + sizeof stack, CLONE_PIDFD | SIGCHLD, (void *)7, &descriptor, NULL, NULL);
    struct pollfd wanted = {.fd = descriptor, .events = POLLIN};
    printf("pidfd: poll %d", poll(&wanted, 1, 10000));
    siginfo_t info;
    printf(" waitid %d", waitid(P_PIDFD, (id_t)descriptor, &info, WEXITED));
    printf(" status %d\n", info.si_status);
    close(descriptor);
    signal(SIGUSR1, handler);
    handled = 0;
    pid = clone(child, stack + sizeof stack, SIGUSR1, (void *)8);
    printf("exit signal: %d", waitpid(pid, &status, __WALL) == pid);
    printf(" handled %d\n", handled);
    pid = clone(child, stack + sizeof stack, 0, (void *)9);
    printf("no exit signal: %d", waitpid(pid, &status, 0));
    printf(" %d\n", waitpid(pid, &status, __WCLONE) == pid);
    printf("bad stack: %ld", syscall(SYS_clone, CLONE_VM | CLONE_THREAD, 0, 0, 0, 0));
    printf(" %s\n", strerrorname_np(errno));
    return 0;
}
