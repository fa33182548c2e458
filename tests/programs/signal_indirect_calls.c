/* what: alarms all the time, most of them in the middle of a call through a pointer, of one target or of several
 * build: -O1
 */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

enum { ALARMS = 200 };

static volatile int n_alarms;
static void on_alarm(int number) { n_alarms += number == SIGALRM; }

__attribute__((noinline)) static long same(long x) { return x; }
__attribute__((noinline)) static long half(long x) { return x / 2; }
__attribute__((noinline)) static long next(long x) { return x + 1; }

static long (*volatile one)(long) = same;
static long (*volatile several[3])(long) = {same, half, next};

__attribute__((noinline)) static long call_all(long x)
{
    for (int i = 0; i < 30; i++)
        x = several[i % 3](one(one(one(x))));
    return x;
}

int main(void)
{
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    long wrong = 0;
    while (n_alarms < ALARMS)
        wrong += call_all(1000) != 2;
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%ld wrong\n", wrong);
    return 0;
}
