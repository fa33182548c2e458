// Threads that call a function as often as they are told, beside a signal's handler that does, too; each adds up what it
// gave and got. With "stay" it waits for a line first, so that somebody can attach; with "filter" it has a seccomp filter
// that lets everything by.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long n_calls, pause_ns;
static volatile long n_handled;
static long total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) long deeper(long number) {
    __asm__ volatile("" ::: "memory");
    return number & 7;
}

__attribute__((noinline)) long step_once(long number, long thread) {
    long found = deeper(number);
    __asm__ volatile("" ::: "memory");
    return 2 * number + thread + 0 * found;
}

__attribute__((noinline)) void tick(int number) {
    (void)number;
    long spun = 0;
    for (long index = 0; index < 2000; index++) {
        __asm__ volatile("" : "+r"(spun));
        spun += index;
    }
    n_handled++;
}

static void rest(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long end = now.tv_sec * 1000000000L + now.tv_nsec + pause_ns;
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec * 1000000000L + now.tv_nsec < end);
}

static void *work(void *argument) {
    long thread = (long)argument, sum = 0;
    for (long index = 0; index < n_calls; index++) {
        sum += step_once(index, thread);
        if (pause_ns) rest();
    }
    pthread_mutex_lock(&lock);
    total += sum;
    pthread_mutex_unlock(&lock);
    return 0;
}

int main(int count, char **words) {
    long n_threads = count > 1 ? atol(words[1]) : 1;
    n_calls = count > 2 ? atol(words[2]) : 10;
    pause_ns = count > 3 ? atol(words[3]) : 0;
    long tick_us = count > 4 ? atol(words[4]) : 0;
    setvbuf(stdout, 0, _IOLBF, 0);
    if (count > 5 && !strcmp(words[5], "stay")) {
        puts("ready");
        if (getchar() == EOF) return 1;
    }
    if (count > 5 && !strcmp(words[5], "filter")) {
        struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        struct sock_fprog filter = {1, &allow};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 1;
    }
    if (tick_us) {
        signal(SIGALRM, tick);
        struct itimerval often = {{0, tick_us}, {0, tick_us}};
        setitimer(ITIMER_REAL, &often, 0);
    }
    pthread_t threads[64];
    for (long index = 1; index < n_threads; index++) pthread_create(&threads[index], 0, work, (void *)index);
    work(0);
    for (long index = 1; index < n_threads; index++) pthread_join(threads[index], 0);
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, 0);
    printf("calls %ld sum %ld handled %ld\n", n_threads * n_calls, total, (long)n_handled);
    return count > 5 && !strcmp(words[5], "fail") ? 3 : 0;
}
