/* what: a timer's handler jumps out by siglongjmp, wherever in loops, calls, recursion, tables and libc it came
 * build: -O1 -fno-stack-protector -fno-optimize-sibling-calls
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static sigjmp_buf back;
static volatile int is_armed, jumps;
static volatile unsigned long sink;

static void handler(int number)
{
    (void)number;
    if (is_armed) {
        is_armed = 0;
        siglongjmp(back, 1);
    }
}

static __attribute__((noinline)) unsigned long recurse(unsigned n) { return n < 2 ? n : recurse(n - 1) + recurse(n - 2); }

static __attribute__((noinline)) unsigned long table(unsigned long x)
{
    switch (x % 7) {
    case 0: return x + 1;
    case 1: return x * 3;
    case 2: return x ^ 99;
    case 3: return x >> 1;
    case 4: return x - 5;
    case 5: return ~x;
    default: return x * x;
    }
}

static void work(int kind)
{
    char buffer[4096];
    unsigned long x = 1;
    for (;;) {
        switch (kind % 4) {
        case 0: sink = recurse(15); break;
        case 1: x = table(x + 1); break;
        case 2: memset(buffer, (int)x, sizeof buffer), memcpy(buffer, buffer + 2048, 2048), x += (unsigned char)buffer[9]; break;
        default: x = strtoul("123456", NULL, 10) + strlen("some text"); break;
        }
        sink = x;
    }
}

int main(void)
{
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = handler}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 300}, {0, 300}}, NULL);
    while (jumps < 200) {
        if (sigsetjmp(back, 1) == 0) {
            is_armed = 1;
            work(jumps);
        }
        jumps++;
    }
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    printf("%d jumps, blocked %d, %lu\n", jumps, sigismember(&mask, SIGALRM), recurse(20));
    return 0;
}
