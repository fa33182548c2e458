/* what: a child attaches to its parent, the first process, which has threads: each of them runs its own code; the parent ends as ever
 * build: -O1 -pthread
 * lost: released_threads
 * status: 7
 */
#include "trace.h"
#include <dirent.h>
#include <pthread.h>
#include <sys/prctl.h>

static volatile int is_over;
static pthread_barrier_t begun;

static void *spin(void *nothing)
{
    pthread_barrier_wait(&begun);
    while (!is_over)
        continue;
    return nothing;
}

/* Attaches to all threads before it lets any of them go: how many there are, and how many of them stand in the program's own code. */
static int trace_all(pid_t process)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/task", process);
    DIR *list = opendir(path);
    pid_t tasks[8];
    int n_tasks = 0, n_right = 0;
    for (struct dirent *entry; list && n_tasks < 8 && (entry = readdir(list));)
        if (entry->d_name[0] != '.')
            tasks[n_tasks++] = atoi(entry->d_name);
    for (int i = 0; i < n_tasks; i++)
        if (ptrace(PTRACE_ATTACH, tasks[i], NULL, NULL) == 0 && wait_stop(tasks[i]) == SIGSTOP)
            n_right += is_in_code(process, registers_of(tasks[i]).rip);
    ptrace(PTRACE_POKEDATA, tasks[0], &is_over, 1l);
    for (int i = 0; i < n_tasks; i++)
        ptrace(PTRACE_DETACH, tasks[i], NULL, NULL);
    return n_tasks * 10 + n_right;
}

int main(void)
{
    struct gate told = make_gate();
    pthread_t threads[2];
    pthread_barrier_init(&begun, NULL, 3);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, spin, NULL);
    pthread_barrier_wait(&begun);
    pid_t child = fork();
    if (child == 0) {
        pass_gate(told);
        _exit(trace_all(getppid()));
    }
    /* Yama lets a process be traced by its descendants only if it says so. */
    prctl(PR_SET_PTRACER, child);
    open_gate(told);
    note("child", wait_stop(child));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 7;
}
