/* what: a tracer that is killed: who it traced goes on, or is killed with it where it asked for that
 * build: -O1
 * lost: released_threads
 */
#include "trace.h"

static void trace_and_die(long options)
{
    struct gate traced = make_gate(), told = make_gate();
    pid_t tracee = fork();
    if (tracee == 0) {
        pass_gate(told);
        long sum = 0;
        for (int i = 0; i < 10; i++)
            sum += getpid() == gettid();
        _exit(20 + (int)sum);
    }
    pid_t tracer = fork();
    if (tracer == 0) {
        if (ptrace(PTRACE_SEIZE, tracee, NULL, (void *)options) != 0 || ptrace(PTRACE_INTERRUPT, tracee, NULL, NULL) != 0)
            _exit(1);
        if (wait_stop(tracee) != EVENT_STOP(SIGTRAP))
            _exit(2);
        open_gate(traced);
        for (;;)
            pause();
    }
    pass_gate(traced);
    kill(tracer, SIGKILL);
    note("tracer", wait_stop(tracer));
    open_gate(told);
    note("tracee", wait_stop(tracee));
}

int main(void)
{
    trace_and_die(0);
    trace_and_die(PTRACE_O_EXITKILL);
    return 0;
}
