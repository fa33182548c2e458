/* what: a program that steps through itself gets on among the signals of timers that come faster than it steps
 * build: -O1 -fno-stack-protector -fcf-protection=none
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include "note.h"

static volatile long traps, alarms;

static void on_trap(int number)
{
    (void)number;
    traps++;
}

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

static void step(long turns)
{
    __asm__ volatile("sub $128, %%rsp\n pushf\n orl $0x100, (%%rsp)\n popf\n"
                     "1: call 2f\n dec %0\n jnz 1b\n jmp 3f\n 2: ret\n"
                     "3: pushf\n andl $~0x100, (%%rsp)\n popf\n nop\n add $128, %%rsp"
                     : "+r"(turns)::"memory", "cc");
}

int main(void)
{
    struct itimerval often = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};
    struct itimerspec faster = {{0, 200000}, {0, 200000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    timer_t timer;
    signal(SIGTRAP, on_trap);
    signal(SIGALRM, on_alarm);
    signal(SIGUSR1, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    step(100);
    setitimer(ITIMER_REAL, &off, NULL);
    note("steps among alarms", traps);
    traps = 0;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &faster, NULL);
    step(100);
    timer_delete(timer);
    note("steps among a timer's signals", traps);
    note("signals came", alarms > 0);
    return 0;
}
