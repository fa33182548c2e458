/* what: events of a child that was seized: it forks, starts a thread, executes a program and ends, and its own child is traced as well
 * build: -O1 -pthread
 * lost: released_threads
 */
#include "trace.h"
#include <pthread.h>

static void *exit_thread(void *nothing) { return nothing; }

static int work(char *program)
{
    pid_t grandchild = fork();
    if (grandchild == 0)
        _exit(3);
    int status;
    waitpid(grandchild, &status, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, exit_thread, NULL);
    pthread_join(thread, NULL);
    grandchild = vfork();
    if (grandchild == 0)
        _exit(4);
    waitpid(grandchild, &status, 0);
    execl(program, program, "executed", NULL);
    return 1;
}

int main(int count, char **arguments)
{
    if (count > 1)
        return 12;
    struct gate begun = make_gate(), told = make_gate();
    pid_t child = fork();
    if (child == 0) {
        open_gate(begun);
        pass_gate(told);
        _exit(work(arguments[0]));
    }
    pass_gate(begun);
    const long options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACECLONE |
                         PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT;
    note("seize", ptrace(PTRACE_SEIZE, child, NULL, (void *)options));
    open_gate(told);
    /* In which order different tasks stop is not known: the child's own events are told as they come, the others' at the end. */
    int n_ends = 0, exits = 0, sum = 0, stop = 0, status;
    while (n_ends < 1) {
        pid_t task = waitpid(-1, &status, __WALL);
        if (task < 0)
            break;
        if (!WIFSTOPPED(status)) {
            n_ends += task == child;
            sum += WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
            continue;
        }
        stop = status >> 8;
        if (task == child && stop >> 8 != 0 && stop >> 8 != PTRACE_EVENT_STOP)
            note("event", stop >> 8);
        if (stop == EVENT(PTRACE_EVENT_EXIT))
            exits++;
        if (stop == EVENT(PTRACE_EVENT_EXEC))
            note("at its start", registers_of(task).rax == 0);
        ptrace(PTRACE_CONT, task, NULL, stop >> 8 ? 0 : stop == SIGCHLD ? SIGCHLD : 0);
    }
    note("exits", exits);
    note("sum", sum);
    return 0;
}
