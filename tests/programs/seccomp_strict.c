/* what: strict mode: what it still allows, then what it kills for; also entered by prctl, and refused with arguments
 * build: -O1
 * also: prctl -O1 -DBY_PRCTL
 * also: end -O1 -DEND
 * status: SIGKILL
 * lost: released_threads
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include "filter.h"
#include "note.h"

static void handler(int number) { note("signal", number); }

int main(void)
{
    signal(SIGSEGV, handler);
    note("with flags", raw(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, 0, 0));
    note("with argument", raw(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, 1, 0));
#ifdef BY_PRCTL
    note("strict", prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
#else
    note("strict", raw(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, 0, 0));
#endif
    note("written", 1);
#ifdef END
    raw(SYS_exit, 137, 0, 0, 0);
#endif
    note("getpid", raw(SYS_getpid, 0, 0, 0, 0));
    return 0;
}
