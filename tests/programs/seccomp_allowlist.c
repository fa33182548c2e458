/* what: a filter that kills for all but four calls, then new code, made code, signals and floating point
 * build: -O2
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include "filter.h"
#include "note.h"

static volatile int ticks;
static void handler(int number) { ticks += number == SIGALRM; }

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static int values[20000];

int main(void)
{
    static const int calls[] = {SYS_write, SYS_rt_sigreturn, SYS_exit_group, SYS_tkill};
    struct itimerval often = {{0, 300}, {0, 300}};
    unsigned char *code = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &often, NULL);
    note("installed", filter_calls(calls, 4, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS, 0));
    unsigned seed = 1;
    for (int i = 0; i < 20000; i++)
        values[i] = (int)((seed = seed * 1103515245 + 12345) >> 8);
    /* Small pieces, which need no memory. */
    for (int i = 0; i < 20000; i += 200)
        qsort(values + i, 200, sizeof *values, compare);
    for (int i = 1; i < 20000; i++)
        if (i % 200 != 0 && values[i - 1] > values[i])
            note("unsorted at", i);
    long sum = 0;
    for (int i = 0; i < 3000; i++) {
        unsigned char *place = code + i * 16;
        memcpy(place, "\xb8\0\0\0\0\xc3", 6);
        place[1] = (unsigned char)i;
        sum += ((int (*)(void))place)();
    }
    note("sum", sum);
    char text[64];
    snprintf(text, sizeof text, "%.12g", strtod("2.5", NULL) * 1.25e10);
    note(text, 0);
    while (ticks < 5)
        continue;
    note("ticks", ticks >= 5);
    _exit(0);
}
