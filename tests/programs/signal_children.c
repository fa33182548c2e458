/* what: SIGCHLD: its code and status for exit, kill, stop and continue; SA_NOCLDSTOP, SA_NOCLDWAIT, ignored
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t n, code, status, pid;

static void on_child(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    n++;
    code = info->si_code;
    status = info->si_status;
    pid = info->si_pid;
}

static void set(int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_child;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(SIGCHLD, &action, NULL);
}

static void wait_for_signals(int count)
{
    sigset_t none;
    sigemptyset(&none);
    while (n < count)
        sigsuspend(&none);
}

static void show(const char *what, pid_t child)
{
    printf("%s: %d times, code %d status %d, its pid %d\n", what, (int)n, (int)code, (int)status, pid == child);
    n = 0;
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    sigset_t set_of_one;
    int result;
    sigemptyset(&set_of_one);
    sigaddset(&set_of_one, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set_of_one, NULL);
    set(SA_RESTART);
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    wait_for_signals(1);
    show("exit", child);
    printf("waited %d\n", waitpid(child, &result, 0) == child);
    for (int round = 0; round < 2; round++) {
        set(round ? SA_NOCLDSTOP : 0);
        child = fork();
        if (child == 0)
            for (;;)
                pause();
        kill(child, SIGSTOP);
        /* Who waits meanwhile takes the status away that the signal tells (kernel/signal.c, do_notify_parent_cldstop). */
        if (round == 0)
            wait_for_signals(1);
        printf("stopped %d\n", waitpid(child, &result, WUNTRACED) == child && WIFSTOPPED(result) && WSTOPSIG(result) == SIGSTOP);
        show("stop", round ? (pid_t)pid : child);
        kill(child, SIGCONT);
        printf("continued %d\n", waitpid(child, &result, WCONTINUED) == child && WIFCONTINUED(result));
        if (round == 0)
            wait_for_signals(1);
        show("continue", round ? (pid_t)pid : child);
        kill(child, SIGKILL);
        wait_for_signals(1);
        show("kill", child);
        printf("waited %d ", waitpid(child, &result, 0) == child);
        printf("signal %d\n", WTERMSIG(result));
    }
    set(SA_NOCLDWAIT);
    child = fork();
    if (child == 0)
        _exit(3);
    result = waitpid(child, NULL, 0);
    printf("nothing to wait for: %d %s\n", result, strerrorname_np(errno));
    wait_for_signals(1);
    show("no zombie", child);
    signal(SIGCHLD, SIG_IGN);
    child = fork();
    if (child == 0)
        _exit(4);
    result = waitpid(-1, NULL, 0);
    printf("ignored: %d %s, signals %d\n", result, strerrorname_np(errno), (int)n);
    return 0;
}
