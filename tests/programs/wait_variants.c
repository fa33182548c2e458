/* what: waitpid, wait4 and waitid: by pid, group, pidfd, any; WNOHANG, WNOWAIT, resource usage, orders of exits, and errors
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start(int status, int group)
{
    int tube[2];
    char byte;
    if (pipe(tube) != 0)
        _exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        if (group >= 0)
            setpgid(0, group);
        close(tube[0]);
        close(tube[1]);
        if (status > 200)
            raise(status - 200);
        _exit(status);
    }
    close(tube[1]);
    if (read(tube[0], &byte, 1) != 0) /* its ends are closed: it is about to end, and in its group */
        _exit(1);
    close(tube[0]);
    return pid;
}

static void show(const char *what, int result, const siginfo_t *info, pid_t pid)
{
    printf("%s: %d, code %d status %d pid %d signal %d\n", what, result, info->si_code, info->si_status, info->si_pid == pid, info->si_signo);
}

int main(void)
{
    int status;
    siginfo_t info;
    struct rusage usage;
    printf("no children: %d", wait(NULL));
    printf(" %s\n", strerrorname_np(errno));
    for (int round = 0; round < 2; round++) {
        pid_t pid = start(3, -1);
        memset(&info, 0, sizeof info);
        show("waitid, left there", waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), &info, pid);
        show("waitid again", waitid(P_PID, (id_t)pid, &info, WEXITED), &info, pid);
        printf("gone: %d", waitid(P_PID, (id_t)pid, &info, WEXITED));
        printf(" %s\n", strerrorname_np(errno));
        pid = start(209, -1);
        show("killed", waitid(P_ALL, 0, &info, WEXITED), &info, pid);
        pid_t first = start(4, 0), second = start(5, first);
        int sum = 0;
        for (int i = 0; i < 2; i++) {
            waitid(P_PGID, (id_t)first, &info, WEXITED);
            sum += info.si_status;
        }
        printf("by group %d %d\n", sum, second > 0);
        first = start(6, 0);
        printf("by negative pid %d", waitpid(-first, &status, 0) == first);
        printf(" %d\n", WEXITSTATUS(status));
        pid = start(7, -1);
        int descriptor = pidfd_open(pid, 0);
        show("by pidfd", waitid(P_PIDFD, (id_t)descriptor, &info, WEXITED), &info, pid);
        close(descriptor);
        pid = start(8, -1);
        memset(&usage, 0xee, sizeof usage);
        printf("wait4 %d", wait4(pid, &status, 0, &usage) == pid);
        printf(" %d, used %d\n", WEXITSTATUS(status), usage.ru_maxrss > 0 && usage.ru_utime.tv_sec < 100);
        pid = fork();
        if (pid == 0)
            for (;;)
                pause();
        memset(&info, 0, sizeof info);
        printf("running: %d", waitpid(pid, &status, WNOHANG));
        printf(" %d pid %d\n", waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG), info.si_pid);
        kill(pid, SIGTERM);
        printf("ended: %d", waitpid(pid, &status, 0) == pid);
        printf(" by %d\n", WTERMSIG(status));
        /* Many, in any order: each is waited for once. */
        sum = 0;
        for (int i = 0; i < 20; i++)
            start(i, -1);
        while (wait(&status) > 0)
            sum += WEXITSTATUS(status);
        printf("twenty: %d\n", sum);
    }
    printf("bad options: %d", waitpid(-1, &status, 0x100));
    printf(" %s\n", strerrorname_np(errno));
    printf("nothing asked: %d", waitid(P_ALL, 0, &info, 0));
    printf(" %s\n", strerrorname_np(errno));
    printf("bad place: %d", waitpid(start(1, -1), (int *)8, 0));
    printf(" %s\n", strerrorname_np(errno));
    return 0;
}
