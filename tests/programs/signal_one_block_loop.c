/* what: a timer ends a loop that is one block without a system call: the signal must be delivered inside it
 * build: -O1 -fno-stack-protector
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

static volatile int stop;
static void on_timer(int number) { stop = number; }

int main(void)
{
    struct sigaction action;
    struct itimerval once = {{0, 0}, {0, 20000}};
    memset(&action, 0, sizeof action);
    action.sa_handler = on_timer;
    sigaction(SIGALRM, &action, NULL);
    unsigned long turns = 0;
    for (int i = 0; i < 5; i++) {
        stop = 0;
        setitimer(ITIMER_REAL, &once, NULL);
        do
            turns++;
        while (!stop);
        stop = 0;
        setitimer(ITIMER_REAL, &once, NULL);
        __asm__ volatile("1: cmpl $0, %0\n je 1b" ::"m"(stop) : "cc");
    }
    printf("stopped by %d, turned %d\n", stop, turns > 0);
    return 0;
}
