/* what: PR_SET_MDWE or a filter against memory that is written and executed: older code is still rewritten; threads, children, programs, signals
 * build: -O1 -pthread
 * also: filter -O1 -pthread -DBY_FILTER
 * also: static -O1 -pthread -static
 * status: 7
 * traits: unordered
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "filter.h"
#include "note.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#endif

static volatile sig_atomic_t alarms;

static void handler(int number)
{
    (void)number;
    alarms++;
}

/* EPERM for memory that would be both, and for any right to execute that is given later, as services are started. */
static int refuse(void)
{
#ifdef BY_FILTER
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pkey_mprotect, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 3, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 3, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, PROT_EXEC | PROT_WRITE),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_EXEC | PROT_WRITE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
#else
    return prctl(PR_SET_MDWE, 1UL, 0UL, 0UL, 0UL);
#endif
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Much that was not executed before: how it goes depends on `seed`. */
static unsigned work(unsigned seed)
{
    int numbers[300];
    char text[64];
    unsigned sum = 0;
    for (int i = 0; i < 300; i++)
        numbers[i] = (int)((seed = seed * 1103515245 + 12345) >> 8 & 0xffff);
    qsort(numbers, 300, sizeof *numbers, compare);
    for (int i = 0; i < 300; i++) {
        if (i & 1)
            snprintf(text, sizeof text, "%d %x", numbers[i], numbers[i]);
        else
            snprintf(text, sizeof text, "%g", (double)numbers[i] / 3);
        sum = sum * 31 + (unsigned)strlen(text) + (unsigned)strtod(text, NULL);
    }
    return sum;
}

static void *thread(void *seed) { return (void *)(unsigned long)work((unsigned)(unsigned long)seed); }

/* Children of children, all of which translate code of their own beside their parents. */
static void descend(int depth)
{
    int status;
    pthread_t other;
    void *sum;
    note("depth", depth);
    pid_t child = fork();
    if (child == 0) {
        if (depth < 3)
            descend(depth + 1);
        note("child", work(depth * 7u));
        _exit(depth);
    }
    unsigned own = work(depth * 5u);
    pthread_create(&other, NULL, thread, (void *)(unsigned long)depth);
    pthread_join(other, &sum);
    waitpid(child, &status, 0);
    note("own", own);
    note("thread", (long)sum);
    note("status", status);
}

/* Children whose work came out as their parent's; others make some at the same time. */
static void *make_children(void *seed)
{
    long alike = 0;
    for (unsigned i = 0; i < 8; i++) {
        int status;
        unsigned mine = (unsigned)(unsigned long)seed * 100 + i;
        pid_t child = fork();
        if (child == 0)
            _exit(work(mine) & 0x7f);
        unsigned own = work(mine) & 0x7f;
        alike += waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == (int)own;
    }
    return (void *)alike;
}

static void fork_at_once(void)
{
    pthread_t others[3];
    long all = 0;
    for (unsigned long i = 0; i < 3; i++)
        pthread_create(&others[i], NULL, make_children, (void *)i);
    for (int i = 0; i < 3; i++) {
        void *alike;
        pthread_join(others[i], &alike);
        all += (long)alike;
    }
    note("alike", all);
}

static unsigned run_made(unsigned char *code, unsigned char value, int times)
{
    const unsigned char text[] = {0xb8, value, 0, 0, 0, 0xc3};
    unsigned sum = 0;
    memcpy(code, text, sizeof text);
    for (int i = 0; i < times; i++)
        sum += ((unsigned (*)(void))code)();
    return sum;
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count == 1) {
        unsigned char *code = mmap(NULL, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        note("made", run_made(code, 3, 100000));
        note("refused", refuse());
        note("again", run_made(code, 4, 100000));
        note("more", run_made(code, 5, 1000));
    }
    note("both", mmap(NULL, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0);
    void *plain = mmap(NULL, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    note("later", mprotect(plain, 4096, 5) ? errno : 0);
    descend(1);
    if (count == 1) {
        execv("/proc/self/exe", (char *[]){arguments[0], "again", NULL});
        return 1;
    }
    struct itimerval often = {{0, 2000}, {0, 2000}};
    fork_at_once();
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &often, NULL);
    unsigned sum = 0, i = 0;
    /* All of them may come before its first turn. */
    do
        sum = i++ % 10 ? sum : work(3);
    while (alarms < 20);
    note("sum", sum);
    return 7;
}
