/* what: a child and a thread that never sleep are not seen asleep in /proc, neither in stat nor in status
 * build: -O1 -pthread
 *
 * With a number they are to raise so many signals, once there is a byte to read; a line says that the child has begun and waits
 * for it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    atomic_int number, has_begun, may_run, is_done;
} *shared;

static int n_signals = 300;

static void handler(int number) { (void)number; }

static void run(void)
{
    shared->has_begun = 1;
    while (!shared->may_run)
        sched_yield();
    for (int i = 0; i < n_signals; i++)
        raise(SIGUSR1);
    shared->is_done = 1;
}

static void *run_thread(void *unused)
{
    shared->number = gettid();
    run();
    return unused;
}

static char state_in(const char *path)
{
    char text[2048];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    if (size <= 0)
        return '?';
    text[size] = '\0';
    const char *line = strstr(text, "\nState:\t");
    return line != NULL ? line[8] : strrchr(text, ')')[2];
}

static void look(const char *who, const char *folder)
{
    char paths[2][64];
    int n_asleep[2] = {0};
    snprintf(paths[0], sizeof paths[0], "%s%d/stat", folder, shared->number);
    snprintf(paths[1], sizeof paths[1], "%s%d/status", folder, shared->number);
    while (!shared->is_done)
        for (int i = 0; i < 2; i++) {
            char state = state_in(paths[i]);
            n_asleep[i] += !shared->is_done && (state == 'S' || state == 't');
        }
    printf("%s seen asleep: %s in stat, %s in status\n", who, n_asleep[0] ? "yes" : "no", n_asleep[1] ? "yes" : "no");
    shared->is_done = 0;
}

int main(int count, char **words)
{
    pthread_t thread;
    setlinebuf(stdout);
    if (count > 1)
        n_signals = atoi(words[1]);
    signal(SIGUSR1, handler);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0) {
        run();
        _exit(0);
    }
    if (count > 1) {
        while (!shared->has_begun)
            sched_yield();
        puts("ready");
        getchar();
    }
    shared->number = child;
    shared->may_run = 1;
    look("child", "/proc/");
    waitpid(child, NULL, 0);
    shared->number = 0;
    pthread_create(&thread, NULL, run_thread, NULL);
    while (shared->number == 0)
        sched_yield();
    look("thread", "/proc/self/task/");
    pthread_join(thread, NULL);
    return 0;
}
