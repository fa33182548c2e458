/* what: processes that share the table of handlers by CLONE_SIGHAND, or start with handlers cleared by CLONE_CLEAR_SIGHAND
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char stack[65536] __attribute__((aligned(64)));

static void handler(int number) { (void)number; }

static int ignore(void *nothing)
{
    (void)nothing;
    signal(SIGUSR2, SIG_IGN);
    return 3;
}

int main(void)
{
    int status;
    struct sigaction action;
    signal(SIGUSR1, handler);
    signal(SIGUSR2, handler);
    pid_t pid = clone(ignore, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_SIGHAND | SIGCHLD, NULL);
    waitpid(pid, &status, 0);
    sigaction(SIGUSR2, NULL, &action);
    printf("child %d, ignored here %d\n", WEXITSTATUS(status), action.sa_handler == SIG_IGN);
    struct clone_args cleared = {.flags = CLONE_CLEAR_SIGHAND, .exit_signal = SIGCHLD};
    pid = (pid_t)syscall(SYS_clone3, &cleared, sizeof cleared);
    if (pid == 0) {
        sigaction(SIGUSR1, NULL, &action);
        _exit(action.sa_handler == SIG_DFL ? 40 : 41);
    }
    waitpid(pid, &status, 0);
    printf("cleared handlers: %d\n", WEXITSTATUS(status));
    return 0;
}
