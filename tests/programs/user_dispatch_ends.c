/* what: syscall user dispatch with a selector that says nothing that is known
 * build: -O1
 * also: blocked -O1 -DBLOCKED
 * status: SIGSYS
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include "filter.h"
#include "note.h"

static void handler(int number) { (void)number; }

int main(void)
{
    char *selector = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGSYS, handler);
#ifdef BLOCKED
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSYS);
    sigprocmask(SIG_BLOCK, &set, NULL);
#endif
    note("on", prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, selector));
#ifdef BLOCKED
    *selector = 1;
#else
    *selector = 7;
#endif
    raw(SYS_getpid, 0, 0, 0, 0);
    return 0;
}
