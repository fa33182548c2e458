/* what: one of several threads asks to be traced (PTRACE_TRACEME), and stops for a signal, beside one that computes
 * build: -O1 -pthread
 * lost: released_threads
 */
#include "trace.h"
#include <pthread.h>

static volatile int is_over;
static volatile long turns;
static int pipe_ends[2];

static void *compute(void *argument)
{
    while (!is_over)
        turns++;
    return argument;
}

static void *ask(void *argument)
{
    (void)argument;
    long result = ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    pid_t tid = (pid_t)syscall(SYS_gettid);
    if (write(pipe_ends[1], &tid, sizeof tid) != sizeof tid)
        _exit(8);
    syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
    is_over = 1;
    return (void *)result;
}

static void run_threads(void)
{
    signal(SIGUSR1, SIG_IGN);
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, compute, NULL);
    while (turns == 0)
        continue;
    pthread_create(&threads[1], NULL, ask, NULL);
    void *result;
    pthread_join(threads[1], &result);
    pthread_join(threads[0], NULL);
    _exit(result == NULL ? 7 : 9);
}

int main(void)
{
    if (pipe(pipe_ends) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0)
        run_threads();
    pid_t tid;
    if (read(pipe_ends[0], &tid, sizeof tid) != sizeof tid)
        return 1;
    note("stopped by", wait_stop(tid));
    note("in its own code", is_in_code(child, registers_of(tid).rip));
    note("goes on", ptrace(PTRACE_CONT, tid, NULL, NULL));
    /* With its own status, or the process' where that has ended by now. */
    note("thread ended", wait_stop(tid) < 0);
    note("process ended", -1 - wait_stop(child));
    return 0;
}
