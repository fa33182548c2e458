/* what: who is seen asleep in /proc is in a call of its own: a child, a thread, a program that was executed
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 3, LIMIT_SECONDS = 5 };

static volatile sig_atomic_t is_late;
static volatile pid_t sleeper;

static void handler(int number) { is_late = number == SIGALRM; }

static void handle(void)
{
    signal(SIGUSR1, handler);
    signal(SIGALRM, handler);
}

/* The signal that comes once this is seen to sleep is what ends it; an earlier one does not. */
static int sleep_until_signal(void)
{
    alarm(LIMIT_SECONDS);
    pause();
    return is_late ? 1 : 0;
}

static void *run(void *unused)
{
    sleeper = gettid();
    pause();
    return unused;
}

static void await_sleep(const char *path)
{
    char text[512];
    for (;;) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t size = read(file, text, sizeof text - 1);
        close(file);
        if (size <= 0)
            return;
        text[size] = '\0';
        const char *state = strrchr(text, ')');
        if (state != NULL && state[2] == 'S')
            return;
    }
}

static int end_of(pid_t pid)
{
    int status;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int main(int count, char **words)
{
    char path[64];
    int n_missed[3] = {0};
    handle();
    if (count > 1)
        return sleep_until_signal();
    for (int round = 0; round < 2 * ROUNDS; round++) {
        int executes = round % 2;
        pid_t pid = fork();
        if (pid == 0) {
            if (executes)
                execl("/proc/self/exe", words[0], "sleeps", NULL);
            _exit(sleep_until_signal());
        }
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        await_sleep(path);
        kill(pid, SIGUSR1);
        n_missed[executes] += end_of(pid) != 0;
    }
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        struct timespec until;
        sleeper = 0;
        pthread_create(&thread, NULL, run, NULL);
        while (sleeper == 0)
            sched_yield();
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", sleeper);
        await_sleep(path);
        pthread_kill(thread, SIGUSR1);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += LIMIT_SECONDS;
        if (pthread_timedjoin_np(thread, NULL, &until) != 0) {
            n_missed[2]++;
            break;
        }
    }
    printf("missed: children %d, programs %d, threads %d\n", n_missed[0], n_missed[1], n_missed[2]);
    return 0;
}
