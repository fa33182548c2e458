/* What it costs that a thread which runs natively is met where a call returns: a hardware breakpoint there, and the signal that it brings.
 *
 * Argument: how many times. Prints nanoseconds of a trap with its signal handler, and of moving the breakpoint elsewhere.
 */
#define _GNU_SOURCE
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile long n_met;

__attribute__((noinline)) static void met(void) { __asm__ volatile(""); }
__attribute__((noinline)) static void other(void) { __asm__ volatile(""); }

static void handle(int signal)
{
    (void)signal;
    n_met++;
}

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

int main(int argc, char **argv)
{
    (void)argc;
    long n = atol(argv[1]);
    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGTRAP, &action, NULL);
    struct perf_event_attr asked = {
        .type = PERF_TYPE_BREAKPOINT,
        .size = sizeof asked,
        .bp_type = HW_BREAKPOINT_X,
        .bp_addr = (unsigned long)met,
        .bp_len = sizeof(long),
        .sample_period = 1,
        .sigtrap = 1,
        .remove_on_exec = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    int event = (int)syscall(SYS_perf_event_open, &asked, 0, -1, -1, 0);
    if (event < 0)
        return 2;
    double start = now_ns();
    for (long number = 0; number < n; number++)
        met();
    double trapped = now_ns();
    for (long number = 0; number < n; number++) {
        asked.bp_addr = (unsigned long)(number % 2 ? met : other);
        if (ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &asked))
            return 2;
    }
    double moved = now_ns();
    printf("%.0f %.0f\n", (trapped - start) / (double)n, (moved - trapped) / (double)n);
    return n_met != n;
}
