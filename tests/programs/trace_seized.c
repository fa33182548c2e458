/* what: PTRACE_SEIZE of a child that runs, and of one that stands in a stop of job control: interrupted, listened to, let go
 * build: -O1
 * lost: released_threads
 */
#include "trace.h"

static volatile sig_atomic_t n_handled;

static void handle(int number) { n_handled += number == SIGUSR1; }

static void look_at(pid_t child, const char *what)
{
    struct user_regs_struct registers = {0};
    struct iovec place = {&registers, sizeof registers};
    note(what, ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &place));
    note("bytes", (long)place.iov_len);
    note("in code", is_in_code(child, registers.rip));
}

static void trace_running(void)
{
    struct gate begun = make_gate();
    pid_t child = fork();
    if (child == 0) {
        signal(SIGUSR1, handle);
        open_gate(begun);
        while (n_handled < 2)
            continue;
        _exit(40 + n_handled);
    }
    pass_gate(begun);
    note("seize", ptrace(PTRACE_SEIZE, child, NULL, NULL));
    note("interrupt", ptrace(PTRACE_INTERRUPT, child, NULL, NULL));
    note("is event", wait_stop(child) == EVENT_STOP(SIGTRAP));
    look_at(child, "running");
    ptrace(PTRACE_CONT, child, NULL, NULL);
    kill(child, SIGUSR1);
    note("signal", wait_stop(child));
    siginfo_t info;
    ptrace(PTRACE_GETSIGINFO, child, NULL, &info);
    note("code", info.si_code);
    look_at(child, "signalled");
    ptrace(PTRACE_CONT, child, NULL, SIGUSR1);
    kill(child, SIGSTOP);
    note("signal", wait_stop(child));
    ptrace(PTRACE_CONT, child, NULL, SIGSTOP);
    note("is stop", wait_stop(child) == EVENT_STOP(SIGSTOP));
    note("listen", ptrace(PTRACE_LISTEN, child, NULL, NULL));
    kill(child, SIGCONT);
    note("is event", wait_stop(child) == EVENT_STOP(SIGTRAP));
    ptrace(PTRACE_CONT, child, NULL, NULL);
    note("continued", wait_stop(child));
    note("detach", ptrace(PTRACE_DETACH, child, NULL, SIGCONT));
    kill(child, SIGUSR1);
    note("ended", wait_stop(child));
}

static void trace_stopped(int attaches)
{
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        _exit(50);
    }
    int status;
    waitpid(child, &status, WUNTRACED);
    note("stops", WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    if (attaches) {
        note("attach", ptrace(PTRACE_ATTACH, child, NULL, NULL));
        note("stop", wait_stop(child));
    } else {
        note("seize", ptrace(PTRACE_SEIZE, child, NULL, (void *)PTRACE_O_TRACEEXIT));
        note("is stop", wait_stop(child) == EVENT_STOP(SIGSTOP));
    }
    look_at(child, "stopped");
    kill(child, SIGCONT);
    ptrace(attaches ? PTRACE_CONT : PTRACE_LISTEN, child, NULL, NULL);
    if (!attaches) {
        note("is event", wait_stop(child) == EVENT_STOP(SIGTRAP));
        ptrace(PTRACE_CONT, child, NULL, NULL);
    }
    int stop;
    while ((stop = wait_stop(child)) == SIGCONT || stop == SIGSTOP)
        ptrace(PTRACE_CONT, child, NULL, NULL);
    if (!attaches) {
        note("is exit", stop == EVENT(PTRACE_EVENT_EXIT));
        ptrace(PTRACE_CONT, child, NULL, NULL);
        stop = wait_stop(child);
    }
    note("ended", stop);
}

int main(void)
{
    trace_running();
    trace_stopped(0);
    trace_stopped(1);
    return 0;
}
