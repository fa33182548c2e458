/* A function that is called all the time while signals come, whose handler calls it, too.
 *
 * Argument: how many calls. Exits with 1 if a signal was lost sight of.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile long n_handled;
static volatile long sum;

__attribute__((noinline)) long counted(long number, long depth)
{
    __asm__ volatile("" : : : "memory");
    return number + depth;
}

static void handle(int signal)
{
    (void)signal;
    sum += counted(n_handled++, 1);
}

int main(int argc, char **argv)
{
    (void)argc;
    long n_calls = atol(argv[1]);
    struct sigaction action = {.sa_handler = handle};
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (long number = 0; number < n_calls; number++)
        sum += counted(number, 0);
    setitimer(ITIMER_REAL, &never, NULL);
    return n_handled == 0;
}
