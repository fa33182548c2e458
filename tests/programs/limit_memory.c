/* what: RLIMIT_AS set by the program: allocations above it fail, those below succeed, threads and children go on
 * build: -O1 -pthread
 * differs: what the runtime has reserved counts as the program's memory: below such a limit nothing more can be mapped
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "note.h"

static void *thread(void *nothing)
{
    note("thread", 1);
    return nothing;
}

int main(void)
{
    struct rlimit limit = {1ul << 30, RLIM_INFINITY};
    note("set", setrlimit(RLIMIT_AS, &limit));
    getrlimit(RLIMIT_AS, &limit);
    note("read", (long)limit.rlim_cur);
    void *small = mmap(NULL, 256ul << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    note("small", small != MAP_FAILED);
    void *large = mmap(NULL, 2ul << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    note("large refused", large == MAP_FAILED && errno == ENOMEM);
    pthread_t other;
    int error = pthread_create(&other, NULL, thread, NULL);
    if (error == 0)
        pthread_join(other, NULL);
    note("thread created", error);
    int status;
    pid_t child = fork();
    if (child == 0) {
        getrlimit(RLIMIT_AS, &limit);
        note("child's limit", (long)limit.rlim_cur);
        execl("/bin/sh", "sh", "-c", "ulimit -v", (char *)NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    note("status", WEXITSTATUS(status));
    return 0;
}
