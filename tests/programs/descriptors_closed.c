/* what: closes every descriptor it has, and more, opens new ones at the numbers it wants, and goes on with threads and children
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "note.h"

static unsigned mix(unsigned x) { return x % 3 ? x * 7 + 1 : x / 3; }

static void *thread(void *nothing)
{
    unsigned x = 5;
    for (int i = 0; i < 20000; i++)
        x = mix(x);
    note("thread", x);
    return nothing;
}

static void go_on(const char *what)
{
    int status;
    pthread_t other;
    note(what, 0);
    int error = pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    note("thread created", error);
    pid_t child = fork();
    if (child == 0) {
        note("child", 1);
        _exit(5);
    }
    waitpid(child, &status, 0);
    note("status", WEXITSTATUS(status));
    /* Code that is new now. */
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, "\xb8\x07\x00\x00\x00\xc3", 6);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    note("code", ((int (*)(void))code)());
    munmap(code, 4096);
}

int main(void)
{
    go_on("at first");
    for (int i = 3; i < 2000; i++)
        close(i);
    go_on("closed one by one");
    note("close_range", close_range(3, ~0u, 0));
    go_on("closed by range");
    /* All numbers taken, until there are no more. */
    struct rlimit limit = {64, 64};
    setrlimit(RLIMIT_NOFILE, &limit);
    int n = 0, last = -1, got;
    while ((got = open("/dev/null", O_RDONLY)) >= 0) {
        last = got;
        n++;
    }
    note("opened", n);
    note("last", last);
    note("errno", errno);
    go_on("none left");
    note("close_range", close_range(3, ~0u, CLOSE_RANGE_UNSHARE));
    close(0);
    close(2);
    note("lowest", open("/dev/null", O_RDWR));
    go_on("own table");
    return 0;
}
