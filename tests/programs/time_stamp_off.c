/* what: PR_SET_TSC: rdtsc and rdtscp raise SIGSEGV, in threads made later, too, until it is allowed again; system calls go on
 * build: -O1 -pthread -fno-stack-protector
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include "note.h"

static __thread sigjmp_buf back;

static void handler(int number, siginfo_t *info, void *context)
{
    (void)context;
    note("signal", number);
    note("  code", info->si_code);
    siglongjmp(back, 1);
}

static void read_counters(void)
{
    if (sigsetjmp(back, 1) == 0) {
        __asm__ volatile("rdtsc" ::: "eax", "edx");
        note("read", 1);
    }
    if (sigsetjmp(back, 1) == 0) {
        __asm__ volatile("rdtscp" ::: "eax", "ecx", "edx");
        note("read with the processor's number", 1);
    }
}

static void *thread(void *nothing)
{
    read_counters();
    return nothing;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < 2; i++) {
        int state = 0;
        read_counters();
        note("off", prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0));
        prctl(PR_GET_TSC, &state, 0, 0, 0);
        note("state", state);
        read_counters();
        pthread_t other;
        pthread_create(&other, NULL, thread, NULL);
        pthread_join(other, NULL);
        note("on", prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0));
    }
    read_counters();
    return 0;
}
