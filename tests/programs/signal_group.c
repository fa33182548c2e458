/* what: every signal that can be handled, sent to the process group: handled once; what is ignored and blocked at the start is as ever
 * build: -O1
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t handled[65];

static void note(int number)
{
    handled[number]++;
}

int main(void)
{
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    for (int number = 1; number < 65; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) != 0)
            continue;
        if (action.sa_handler != SIG_DFL || sigismember(&blocked, number) == 1)
            printf("%d: %s, %s\n", number, action.sa_handler == SIG_IGN ? "ignored" : "not ignored",
                   sigismember(&blocked, number) == 1 ? "blocked" : "not blocked");
    }
    for (int number = 1; number < 65; number++) {
        /* What these mean to whoever started the program is not the program's alone. */
        if (number == SIGKILL || number == SIGSTOP || number == SIGHUP || number == SIGINT || number == SIGQUIT
            || number == SIGTERM || signal(number, note) == SIG_ERR)
            continue;
        kill(0, number);
        if (handled[number] != 1)
            printf("%d: handled %d times\n", number, handled[number]);
    }
    /* A child has no handler for it, and ends; this one goes on, and so does everybody else. */
    if (fork() == 0) {
        signal(SIGUSR1, SIG_DFL);
        kill(0, SIGUSR1);
        _exit(1);
    }
    int status = 0;
    wait(&status);
    printf("child: signal %d; %d here\n", WTERMSIG(status), handled[SIGUSR1]);
    return 0;
}
