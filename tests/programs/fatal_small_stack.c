/* what: ended by a SIGSEGV whose own frame does not fit on the alternate stack, though it has a handler
 * build: -O1 -fno-stack-protector
 * status: SIGSEGV
 */
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "note.h"

static char small[2048];

static void handler(int number)
{
    note("signal", number);
    _exit(1);
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    stack_t stack = {.ss_sp = small, .ss_size = sizeof small};
    note("set", sigaltstack(&stack, NULL));
    raise(SIGUSR1);
    note("not reached", 0);
    return 0;
}
