/* what: waits for input inside a signal handler on an alternate stack; then everything is as it was
 * build: -O1
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int n_bad;
static char *stack;

static void check(int is_right, const char *what)
{
    if (!is_right) {
        n_bad++;
        printf("bad: %s\n", what);
    }
}

static void handle(int number, siginfo_t *info, void *context)
{
    stack_t now;
    sigset_t mask;
    char byte = 0;
    (void)context;
    sigaltstack(NULL, &now);
    check(now.ss_sp == stack && now.ss_flags == SS_ONSTACK, "not on the alternate stack");
    puts("ready");
    fflush(stdout);
    check(read(STDIN_FILENO, &byte, 1) == 1 && byte == 'x', "read in the handler");
    sigaltstack(NULL, &now);
    check(now.ss_sp == stack && now.ss_flags == SS_ONSTACK && now.ss_size == 65536, "the alternate stack in the handler");
    sigprocmask(SIG_SETMASK, NULL, &mask);
    check(sigismember(&mask, SIGUSR1) && sigismember(&mask, SIGUSR2) && !sigismember(&mask, SIGTERM), "the mask");
    check(number == SIGUSR1 && info->si_code == SI_TKILL && info->si_pid == getpid(), "the signal's origin");
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK}, now;
    stack = aligned_alloc(4096, 65536);
    stack_t alternate = {.ss_sp = stack, .ss_size = 65536}, after;
    sigset_t mask;
    volatile double kept = 1.25;
    sigaltstack(&alternate, NULL);
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    check(kept == 1.25, "a value");
    sigaltstack(NULL, &after);
    check(after.ss_sp == stack && after.ss_flags == 0 && after.ss_size == 65536, "the alternate stack");
    sigprocmask(SIG_SETMASK, NULL, &mask);
    check(!sigismember(&mask, SIGUSR1) && !sigismember(&mask, SIGUSR2), "the mask after the handler");
    sigaction(SIGUSR1, NULL, &now);
    check(now.sa_sigaction == handle && (now.sa_flags & (SA_SIGINFO | SA_ONSTACK)) == (SA_SIGINFO | SA_ONSTACK), "the action");
    puts(n_bad ? "bad" : "good");
    return n_bad != 0;
}
