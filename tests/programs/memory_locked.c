/* what: mlockall below a small limit: what is mapped, what is mapped later, all at once or when it is used, too much, threads, a child, undone
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "filter.h"

#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif
#define MEGABYTE (1ul << 20)

static void tell(const char *what, int result)
{
    printf("%s: %s\n", what, result == 0 ? "good" : strerror(errno));
}

/* Locked memory in whole megabytes. */
static long locked(void)
{
    char line[256];
    long kilobytes = -1;
    FILE *status = fopen("/proc/self/status", "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        sscanf(line, "VmLck: %ld", &kilobytes);
    if (status != NULL)
        fclose(status);
    return kilobytes / 1024;
}

static char *map(unsigned long size)
{
    char *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    tell("mapped", mapped == MAP_FAILED ? -1 : 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static int is_there(char *memory)
{
    unsigned char there = 0;
    mincore(memory, 4096, &there);
    return there & 1;
}

static void *thread_main(void *unused)
{
    printf("a thread: %d\n", locked() > 0);
    return unused;
}

int main(void)
{
    struct rlimit limit;
    pthread_attr_t attributes;
    pthread_t thread;
    int status;
    getrlimit(RLIMIT_MEMLOCK, &limit);
    limit.rlim_cur = limit.rlim_max < 8 * MEGABYTE ? limit.rlim_max : 8 * MEGABYTE;
    setrlimit(RLIMIT_MEMLOCK, &limit);
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
        return 9;
    tell("no flags", mlockall(0));
    tell("on fault alone", mlockall(MCL_ONFAULT));
    tell("unknown flag", mlockall(64 | MCL_CURRENT));
    char *before = map(MEGABYTE);
    printf("there: %d\n", is_there(before));
    tell("all", mlockall(MCL_CURRENT | MCL_FUTURE));
    printf("locked some: %d, there: %d\n", locked() > 1, is_there(before));
    char *later = map(MEGABYTE);
    printf("locked more: %d, there: %d\n", locked() > 2, is_there(later));
    map(64 * MEGABYTE);
    tell("malloc", malloc(100000) == NULL ? -1 : 0);
    tell("break", sbrk(64 * MEGABYTE) == (void *)-1 ? -1 : 0);
    tell("break", sbrk(4096) == (void *)-1 ? -1 : 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 17);
    int made = pthread_create(&thread, &attributes, thread_main, NULL);
    pthread_join(thread, NULL);
    tell("thread", made);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("in the child: %ld\n", locked());
        map(64 * MEGABYTE);
        fflush(stdout);
        _exit(3);
    }
    waitpid(child, &status, 0);
    printf("its status: %d\n", status);
    tell("undone", munlockall());
    printf("locked: %ld\n", locked());
    map(64 * MEGABYTE);
    tell("too much", mlockall(MCL_CURRENT));
    tell("later, when used", mlockall(MCL_FUTURE | MCL_ONFAULT));
    later = map(2 * MEGABYTE);
    printf("locked: %ld, there: %d\n", locked(), is_there(later));
    printf("mlock refused: %ld\n", filter_one(SYS_mlock, SECCOMP_RET_ERRNO | 123));
    tell("not by mlockall", mlockall(MCL_FUTURE | MCL_ONFAULT));
    limit.rlim_cur = 0;
    setrlimit(RLIMIT_MEMLOCK, &limit);
    tell("nothing allowed", mlockall(MCL_CURRENT));
    return 0;
}
