/* what: fork while threads run: the child has one, its copy of memory, pthread_atfork handlers, and makes threads of its own
 * build: -O1 -pthread
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int go_on = 1;
static volatile unsigned long work[3];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int prepared, in_parent, in_child;

static void prepare(void)
{
    pthread_mutex_lock(&lock);
    prepared++;
}
static void parent(void)
{
    in_parent++;
    pthread_mutex_unlock(&lock);
}
static void child(void)
{
    in_child++;
    pthread_mutex_unlock(&lock);
}

static void *spin(void *mine)
{
    while (go_on) {
        pthread_mutex_lock(&lock);
        ++*(volatile unsigned long *)mine;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *add(void *to)
{
    for (int i = 0; i < 1000; i++)
        __atomic_fetch_add((int *)to, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static int count_threads(void)
{
    char line[200];
    int n = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file))
        sscanf(line, "Threads: %d", &n);
    if (file != NULL)
        fclose(file);
    return n;
}

static void *fork_here(void *which)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int sum = 0, threads = count_threads();
        pthread_t own[3];
        for (int i = 0; i < 3; i++)
            pthread_create(&own[i], NULL, add, &sum);
        for (int i = 0; i < 3; i++)
            pthread_join(own[i], NULL);
        printf("child of %s: %d thread, sum %d, handlers %d %d %d\n", (const char *)which, threads, sum, prepared, in_parent, in_child);
        exit(5);
    }
    waitpid(pid, &status, 0);
    printf("status %d\n", WEXITSTATUS(status));
    return NULL;
}

int main(void)
{
    pthread_t threads[3], other;
    pthread_atfork(prepare, parent, child);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, spin, (void *)&work[i]);
    for (int i = 0; i < 3; i++)
        while (work[i] == 0)
            ;
    for (int i = 0; i < 3; i++)
        fork_here("the first thread");
    pthread_create(&other, NULL, fork_here, "another thread");
    pthread_join(other, NULL);
    go_on = 0;
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("handlers %d %d %d\n", prepared, in_parent, in_child);
    return 0;
}
