/* what: limits that the program sets for itself: memory, stack, files, sizes, processes, core files; what then fails, and what goes on
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "note.h"

static void set(int which, rlim_t soft)
{
    struct rlimit limit;
    getrlimit(which, &limit);
    limit.rlim_cur = soft;
    note("set", setrlimit(which, &limit));
    getrlimit(which, &limit);
    note("  read", (long)limit.rlim_cur);
}

static void *thread(void *nothing)
{
    unsigned x = 1;
    for (unsigned i = 0; i < 5000; i++)
        x = x * 31 + i;
    note("thread", x);
    return nothing;
}

static void go_on(void)
{
    int status;
    pthread_t other;
    int error = pthread_create(&other, NULL, thread, NULL);
    if (error == 0)
        pthread_join(other, NULL);
    note("thread created", error);
    pid_t child = fork();
    if (child == 0) {
        note("child", 1);
        _exit(4);
    }
    if (child > 0) {
        waitpid(child, &status, 0);
        note("forked", child > 0);
        note("status", WEXITSTATUS(status));
    }
}

int main(void)
{
    go_on();
    note("core", 0);
    set(RLIMIT_CORE, 0);
    note("files", 0);
    set(RLIMIT_NOFILE, 3);
    note("open fails", open("/dev/null", O_RDONLY) < 0 && errno == EMFILE);
    go_on();
    set(RLIMIT_NOFILE, 100);
    note("file size", 0);
    signal(SIGXFSZ, SIG_IGN);
    FILE *file = tmpfile();
    set(RLIMIT_FSIZE, 4096);
    note("grown too far", ftruncate(fileno(file), 10000) != 0 && errno == EFBIG);
    go_on();
    note("locked memory", 0);
    set(RLIMIT_MEMLOCK, 4096);
    go_on();
    note("stack", 0);
    set(RLIMIT_STACK, 256 * 1024);
    go_on();
    note("data", 0);
    set(RLIMIT_DATA, 512ul << 20);
    note("allocated", malloc(600ul << 20) == NULL);
    go_on();
    note("processor time", 0);
    set(RLIMIT_CPU, 100);
    go_on();
    return 0;
}
