/* what: MXCSR and the x87 control word: rounding and sticky flags over calls, threads, forks, signals, longjmp, callbacks of libc
 * build: -O1 -pthread -frounding-math -lm
 */
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static jmp_buf back;

static void show(const char *what)
{
    unsigned control = 0;
    unsigned short word = 0;
    __asm__ volatile("stmxcsr %0\n fnstcw %1" : "=m"(control), "=m"(word));
    printf("%s: mxcsr %x word %x\n", what, control, word);
    fflush(stdout);
}

static void handler(int number)
{
    (void)number;
    show("handler");
    fesetround(FE_DOWNWARD);
    volatile double zero = 0;
    zero = 1 / zero;
}

static void *thread(void *nothing)
{
    show("thread");
    fesetround(FE_TOWARDZERO);
    show("thread, changed");
    return nothing;
}

static int compare(const void *a, const void *b)
{
    static int first = 1;
    if (first)
        show("callback");
    first = 0;
    return *(const int *)a - *(const int *)b;
}

int main(void)
{
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST};
    signal(SIGUSR1, handler);
    show("start");
    for (int i = 0; i < 4; i++) {
        fesetround(modes[i]);
        volatile double three = 3, third = 1 / three;
        volatile long double long_third = 1 / (long double)three;
        printf("%a %La %ld\n", third, long_third, lrint(third * 10));
        show("rounding");
        raise(SIGUSR1);
        show("after the signal");
        if (setjmp(back) == 0) {
            fesetround(FE_UPWARD);
            longjmp(back, 1);
        }
        show("after longjmp");
        fesetround(modes[i]);
        int values[] = {3, 1, 2};
        qsort(values, 3, sizeof *values, compare);
        pthread_t other;
        pthread_create(&other, NULL, thread, NULL);
        pthread_join(other, NULL);
        if (fork() == 0) {
            show("child");
            _exit(0);
        }
        wait(NULL);
        feclearexcept(FE_ALL_EXCEPT);
        show("cleared");
    }
    return 0;
}
