/* A function that is called where capturing is awkward: argument 1 says how, argument 2 how often.
 *
 * ret: it is one instruction, and a timer's signals come all the time; they are counted by the exit status being 0.
 * clock: the time stamp counter is refused to the thread. aligned: alignment is checked. slow: with pauses.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>

void once(long a, long b, long c, long d, long e, long f);
__asm__(".globl once\n.type once, @function\nonce: ret\n.size once, 1\n");

static volatile long n_signals;

static void handle(int signal)
{
    (void)signal;
    n_signals++;
}

static void check_alignment(long mask)
{
    long flags = 1L << 18;
    __asm__ volatile("pushfq\n\tandq %1, (%%rsp)\n\torq %0, (%%rsp)\n\tpopfq" : : "r"(flags & mask), "r"(~flags) : "cc", "memory");
}

int main(int argc, char **argv)
{
    long n_calls = argc > 2 ? atol(argv[2]) : 1;
    const char *how = argc > 1 ? argv[1] : "";
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    struct timespec pause = {0, 20000000};
    /* Asked before: the library reads words as they lie, which is refused where alignment is checked. */
    int is_aligned = !strcmp(how, "aligned"), is_slow = !strcmp(how, "slow");
    signal(SIGALRM, handle);
    if (!strcmp(how, "ret"))
        setitimer(ITIMER_REAL, &often, NULL);
    if (!strcmp(how, "clock"))
        prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
    for (long n = 0; n < n_calls; n++) {
        if (is_aligned)
            check_alignment(-1);
        once(n, 1, 2, 3, 4, 5);
        if (is_aligned)
            check_alignment(0);
        if (is_slow)
            nanosleep(&pause, NULL);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    return strcmp(how, "ret") == 0 && n_signals == 0;
}
