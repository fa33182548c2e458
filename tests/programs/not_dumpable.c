/* what: PR_SET_DUMPABLE off: nobody without privileges looks at it; threads, children, code in shared memory, new programs
 * build: -O1 -pthread
 * status: 3
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "note.h"

static void *thread(void *nothing)
{
    note("thread", prctl(PR_GET_DUMPABLE));
    return nothing;
}

/* Where nothing was mapped when the program began. */
static int run_made(void)
{
    static const unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3};
    unsigned char *at = mmap(NULL, 4096, 7, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memcpy(at, code, sizeof code);
    return ((int (*)(void))at)();
}

int main(int count, char **arguments)
{
    pthread_t other;
    int status;
    note("first", prctl(PR_GET_DUMPABLE));
    prctl(PR_SET_DUMPABLE, 0);
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    note("made", run_made());
    pid_t child = fork();
    if (child == 0) {
        note("child", prctl(PR_GET_DUMPABLE));
        execv("/proc/self/exe.not", arguments);
        note("failed", prctl(PR_GET_DUMPABLE));
        if (count == 1)
            execv(arguments[0], (char *[]){arguments[0], "again", NULL});
        _exit(5);
    }
    waitpid(child, &status, 0);
    note("status", status);
    note("last", prctl(PR_GET_DUMPABLE));
    return 3;
}
