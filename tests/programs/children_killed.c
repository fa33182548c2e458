/* what: children that are killed as soon as they are made: waited for, by any call and by another thread, and buried by nobody
 * build: -O1 -pthread
 *
 * The last line says how many processes there were.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int n_children = 6;
static int n_processes = 1;
static atomic_int n_buried;

static pid_t make_child(void)
{
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    n_processes++;
    return pid;
}

static int was_killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }

static void killed_and_waited_for(void)
{
    int n_killed = 0;
    for (int i = 0; i < n_children; i++) {
        pid_t pid = make_child();
        int status;
        kill(pid, SIGKILL);
        if (i % 2 == 0) {
            n_killed += waitpid(pid, &status, 0) == pid && was_killed(status);
        } else {
            siginfo_t info = {0};
            n_killed += waitid(P_ALL, 0, &info, WEXITED) == 0 && info.si_pid == pid && info.si_code == CLD_KILLED;
        }
    }
    printf("waited for: %d of %d were killed\n", n_killed, n_children);
}

static void killed_together(void)
{
    pid_t pids[n_children];
    int n_killed = 0, status;
    for (int i = 0; i < n_children; i++)
        pids[i] = make_child();
    for (int i = 0; i < n_children; i++)
        kill(pids[i], SIGKILL);
    while (wait(&status) > 0)
        n_killed += was_killed(status);
    printf("together: %d of %d were killed\n", n_killed, n_children);
}

/* Waits for whatever there is, also for what is not there yet. */
static void *wait_for_all(void *unused)
{
    int status;
    while (n_buried < n_children)
        if (wait(&status) > 0)
            n_buried += was_killed(status);
        else
            sched_yield();
    return unused;
}

static void buried_by_a_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_all, NULL);
    for (int i = 0; i < n_children; i++)
        kill(make_child(), SIGKILL);
    pthread_join(thread, NULL);
    printf("by a thread: %d of %d were killed\n", n_buried, n_children);
}

static void buried_by_nobody(void)
{
    signal(SIGCHLD, SIG_IGN);
    for (int i = 0; i < n_children; i++)
        kill(make_child(), SIGKILL);
    pid_t found = wait(NULL);
    printf("by nobody: %s\n", found == -1 && errno == ECHILD ? "no children" : "a child");
    signal(SIGCHLD, SIG_DFL);
}

int main(int count, char **words)
{
    if (count > 1)
        n_children = atoi(words[1]);
    setlinebuf(stdout);
    killed_and_waited_for();
    killed_together();
    buried_by_a_thread();
    buried_by_nobody();
    printf("%d\n", n_processes);
    return 0;
}
