/* what: filters of one thread: a call kills it and nobody else, or is refused in the threads that it starts only
 * build: -O2 -pthread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include "filter.h"
#include "note.h"

static int ready[2];

static void *started(void *unused)
{
    note("in its thread", raw(SYS_getppid, 0, 0, 0, 0));
    return unused;
}

static void *killed(void *unused)
{
    note("installed", filter_one(SYS_getpgrp, SECCOMP_RET_KILL_THREAD));
    if (write(ready[1], "x", 1) != 1)
        return NULL;
    raw(SYS_getpgrp, 0, 0, 0, 0);
    note("still there", 1);
    return unused;
}

static void *refused(void *unused)
{
    pthread_t thread;
    note("installed", filter_one(SYS_getppid, SECCOMP_RET_ERRNO | 55));
    note("refused", raw(SYS_getppid, 0, 0, 0, 0));
    pthread_create(&thread, NULL, started, NULL);
    pthread_join(thread, NULL);
    return unused;
}

int main(void)
{
    pthread_t thread;
    char byte;
    pthread_create(&thread, NULL, refused, NULL);
    pthread_join(thread, NULL);
    note("not in main", raw(SYS_getppid, 0, 0, 0, 0) > 0);
    if (pipe(ready) != 0)
        return 1;
    pthread_create(&thread, NULL, killed, NULL);
    if (read(ready[0], &byte, 1) != 1)
        return 1;
    pthread_join(thread, NULL);
    note("not killed", raw(SYS_getpgrp, 0, 0, 0, 0) > 0);
    return 0;
}
