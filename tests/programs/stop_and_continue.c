/* what: a process that is stopped and continued by another in the middle of calls, loops and handlers, with threads; job control
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int go_on = 1;
static volatile int *continued; /* shared with the helpers */
static volatile unsigned long work[2];

static char state_of(pid_t pid)
{
    char name[40], text[300];
    snprintf(name, sizeof name, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(name, "r");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    text[size] = '\0';
    if (file)
        fclose(file);
    char *end = strrchr(text, ')');
    return end && end[1] ? end[2] : '?';
}

static void on_continue(int number)
{
    (void)number;
    ++*continued;
}

static void *spin(void *mine)
{
    while (go_on)
        ++*(volatile unsigned long *)mine;
    return NULL;
}

/* A child stops this process, which has threads that run, `times` times. */
static void be_stopped(int number, int times, int is_handled)
{
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        for (int i = 0; i < times; i++) {
            kill(parent, number);
            while (state_of(parent) != 'T')
                usleep(100);
            int before = *continued;
            kill(parent, SIGCONT);
            while (state_of(parent) == 'T' || (is_handled && *continued == before))
                usleep(100);
        }
        _exit(11);
    }
    int status;
    pid_t got;
    do
        got = waitpid(child, &status, 0);
    while (got < 0);
    printf("stopped by %d, %d times: helper %d\n", number, times, WEXITSTATUS(status));
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    continued = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    be_stopped(SIGSTOP, 5, 0);
    signal(SIGCONT, on_continue);
    be_stopped(SIGSTOP, 5, 1);
    printf("SIGCONT handled %d times\n", *continued);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, spin, (void *)&work[i]);
    be_stopped(SIGSTOP, 5, 1);
    while (work[0] == 0 || work[1] == 0)
        ;
    go_on = 0;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("both ran %d\n", work[0] > 0 && work[1] > 0);
    /* A child in its own group, with the signals of job control: caught, default, continued. */
    static const int stops[] = {SIGTSTP, SIGTTIN, SIGTTOU, SIGSTOP};
    for (int i = 0; i < 4; i++) {
        int status, tube[2];
        if (pipe(tube) != 0)
            return 1;
        pid_t child = fork();
        if (child == 0) {
            char byte;
            setpgid(0, 0);
            raise(stops[i]);
            _exit(read(tube[0], &byte, 1) == 1 ? 20 + i : 1);
        }
        waitpid(child, &status, WUNTRACED);
        printf("child stopped %d by %d", WIFSTOPPED(status) != 0, WSTOPSIG(status));
        kill(child, SIGCONT);
        waitpid(child, &status, WCONTINUED);
        printf(", continued %d", WIFCONTINUED(status) != 0);
        if (write(tube[1], "x", 1) != 1)
            return 1;
        close(tube[0]);
        close(tube[1]);
        waitpid(child, &status, 0);
        printf(", exited %d\n", WEXITSTATUS(status));
    }
    return 0;
}
