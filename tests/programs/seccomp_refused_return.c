/* what: returns from handlers that a filter refuses, or answers with a signal: the thread goes on behind the call
 * build: -O1
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>
#include "filter.h"
#include "note.h"

static void trapped(int number, siginfo_t *info, void *opaque)
{
    greg_t *r = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("call", info->si_syscall);
    note("rax", r[REG_RAX]);
    note("address", (long)info->si_call_addr == r[REG_RIP]);
    exit(0);
}

static void handler(int number)
{
    static volatile double value = 1.5;
    note("signal", number);
    value *= 2;
    note("refused", raw(SYS_rt_sigreturn, 0, 0, 0, 0));
    note("value", (long)value);
    note("again", raw(SYS_rt_sigreturn, 0, 0, 0, 0));
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = trapped;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &action, NULL);
    note("installed", filter_one(SYS_rt_sigreturn, SECCOMP_RET_TRAP));
    raw(SYS_rt_sigreturn, 0, 0, 0, 0);
}

int main(void)
{
    signal(SIGUSR1, handler);
    note("installed", filter_one(SYS_rt_sigreturn, SECCOMP_RET_ERRNO | 71));
    note("refused", raw(SYS_rt_sigreturn, 0, 0, 0, 0));
    raise(SIGUSR1);
    return 1;
}
