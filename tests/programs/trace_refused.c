/* what: tracing that the kernel refuses: a thread of one's own, nobody, one that is traced or has ended, bad options; nobody runs otherwise for it
 * build: -O1
 */
#include "trace.h"

static void refused(const char *what, long result)
{
    note(what, result == 0 ? 0 : errno);
}

int main(void)
{
    struct gate told = make_gate();
    pid_t ended = fork();
    if (ended == 0)
        _exit(0);
    siginfo_t info;
    waitid(P_PID, (id_t)ended, &info, WEXITED | WNOWAIT);
    pid_t child = fork();
    if (child == 0) {
        pass_gate(told);
        _exit(5);
    }
    refused("oneself", ptrace(PTRACE_ATTACH, getpid(), NULL, NULL));
    refused("oneself", ptrace(PTRACE_SEIZE, gettid(), NULL, NULL));
    refused("nobody", ptrace(PTRACE_ATTACH, 0x7ffffff0, NULL, NULL));
    refused("nobody", ptrace(PTRACE_SEIZE, 0, NULL, NULL));
    refused("nobody", ptrace(PTRACE_ATTACH, -1, NULL, NULL));
    refused("ended", ptrace(PTRACE_ATTACH, ended, NULL, NULL));
    refused("an address", ptrace(PTRACE_SEIZE, child, (void *)8, NULL));
    refused("options", ptrace(PTRACE_SEIZE, child, NULL, (void *)0x10000000));
    refused("not traced", ptrace(PTRACE_CONT, child, NULL, NULL));
    refused("not traced", ptrace(PTRACE_DETACH, child, NULL, NULL));
    refused("no request", ptrace((enum __ptrace_request)0x7777, child, NULL, NULL));
    wait_stop(ended);
    open_gate(told);
    note("ended", wait_stop(child));
    return 0;
}
