/* what: execution of itself from inside handlers, on an alternate stack, of a fault: what is blocked there stays blocked
 * build: -O1
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char stack[65536];
static const char *next;

static void handler(int number)
{
    (void)number;
    execl("/proc/self/exe", "exec_from_handler", next, (char *)NULL);
    _exit(99);
}

int main(int argc, char **argv)
{
    int generation = argc > 1 ? atoi(argv[1]) : 0;
    sigset_t mask;
    stack_t now;
    struct sigaction action;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    sigaltstack(NULL, &now);
    sigaction(SIGUSR1, NULL, &action);
    printf("generation %d: blocked %d %d %d, stack off %d, default %d\n", generation, sigismember(&mask, SIGUSR1),
           sigismember(&mask, SIGSEGV), sigismember(&mask, SIGHUP), now.ss_flags == SS_DISABLE, action.sa_handler == SIG_DFL);
    fflush(stdout);
    static char texts[4][2] = {"1", "2", "3", "4"};
    if (generation == 4)
        return 0;
    next = texts[generation];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    action = (struct sigaction){.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaddset(&action.sa_mask, SIGHUP);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigprocmask(SIG_SETMASK, &(sigset_t){0}, NULL);
    if (generation % 2)
        *(volatile int *)8 = 1;
    raise(SIGUSR1);
    return 1;
}
