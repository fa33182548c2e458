/* what: jumps to addresses where nothing is mapped natively, and the runtime may have its code or tables
 * build: -O1
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include "note.h"

static sigjmp_buf back;
static unsigned long wanted;

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *r = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("code", info->si_code);
    note("address", (unsigned long)info->si_addr == wanted);
    note("rip", (unsigned long)r[REG_RIP] == wanted);
    note("error", r[REG_ERR]);
    note("trap", r[REG_TRAPNO]);
    siglongjmp(back, 1);
}

int main(void)
{
    static const unsigned long bases[] = {0x1a0000000000, 0x2a0000000000, 0x3a0000000000, 0x4a0000000000};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < 4; i++)
        for (unsigned long offset = 0x1000; offset < 0x800000; offset = offset * 3 & ~0xffful) {
            wanted = bases[i] + offset;
            if (sigsetjmp(back, 1) == 0)
                ((void (*)(void))wanted)();
        }
    note("done", 1);
    return 0;
}
