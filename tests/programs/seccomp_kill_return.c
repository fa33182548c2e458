/* what: a filter that kills for rt_sigreturn: the handler's end is the process's
 * status: SIGSYS
 */
#include <signal.h>
#include "filter.h"
#include "note.h"

static void handler(int number) { note("signal", number); }

int main(void)
{
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    note("installed", filter_one(SYS_rt_sigreturn, SECCOMP_RET_KILL_PROCESS));
    raise(SIGUSR1);
    note("still there", 1);
    return 0;
}
