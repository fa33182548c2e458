/* what: calls that a filter answers with SIGSYS while a timer's signals come: each handler runs, each result is right
 * build: -O2 -pthread
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>
#include "filter.h"
#include "note.h"

static volatile long ticks, traps;
static void tick(int number) { ticks += number == SIGALRM; }

static void trap(int number, siginfo_t *info, void *opaque)
{
    greg_t *r = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    traps += number == SIGSYS;
    r[REG_RAX] = r[REG_RAX] == info->si_syscall ? r[REG_RDI] + 3 : -1;
}

int main(void)
{
    static const int calls[] = {SYS_getpgid, SYS_mprotect, SYS_rt_sigaction, SYS_clone};
    struct itimerval often = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = trap;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &action, NULL);
    signal(SIGALRM, tick);
    note("installed", filter_calls(calls, 4, SECCOMP_RET_TRAP, SECCOMP_RET_ALLOW, 0));
    setitimer(ITIMER_REAL, &often, NULL);
    long wrong = 0, made = 0;
    while (ticks < 300)
        for (int i = 0; i < 4; i++, made++)
            wrong += raw(calls[i], made & 31, 0, 0, 8) != (made & 31) + 3;
    setitimer(ITIMER_REAL, &never, NULL);
    note("wrong", wrong);
    note("all trapped", traps == made);
    return 0;
}
