/* what: attached to: tasks that share the memory of another process, by clone and by vfork, which go on in their own code
 * build: -O1
 * lost: released_threads
 */
#include "trace.h"
#include <sched.h>
#include <sys/mman.h>

enum { TURNS = 20000 };

static volatile struct {
    long turns;
    pid_t task;
    int is_over;
} *shared;

static char stack[1 << 16];

/* No system call: a loop that stays where it is. */
__attribute__((noipa)) static int spin(void *argument)
{
    while (!shared->is_over)
        shared->turns++;
    return 3 + (argument != NULL);
}

static void look_at(const char *name, pid_t task)
{
    note(name, ptrace(PTRACE_ATTACH, task, NULL, NULL));
    int stop = wait_stop(task);
    note("stopped by", stop & 0xff);
    struct user_regs_struct registers = registers_of(task);
    note("in its own code", is_in_code(task, registers.rip));
    for (int i = 0; i < 20; i++) {
        ptrace(PTRACE_SINGLESTEP, task, NULL, NULL);
        wait_stop(task);
    }
    note("and after steps", is_in_code(task, registers_of(task).rip));
    shared->is_over = 1;
    note("detached", ptrace(PTRACE_DETACH, task, NULL, NULL));
}

static void await_turns(void)
{
    while (shared->turns < TURNS)
        usleep(1000);
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t task = clone(spin, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL);
    await_turns();
    look_at("clone", task);
    note("ended", -1 - wait_stop(task));

    shared->turns = shared->is_over = 0;
    pid_t tracer = fork();
    if (tracer == 0) {
        await_turns();
        look_at("vfork", shared->task);
        _exit(0);
    }
    task = vfork();
    if (task == 0) {
        shared->task = getpid();
        _exit(spin(stack));
    }
    /* The tracer writes too: what it has to say comes first. */
    note("tracer", -1 - wait_stop(tracer));
    note("ended", -1 - wait_stop(task));
    return 0;
}
