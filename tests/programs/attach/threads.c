/* what: threads that lock, signal, compute with x87 and AVX, are made and end, and handle timers, until SIGTERM
 * build: -O1 -pthread
 * also: static -O1 -pthread -static
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PING, PONG, CHURN, FLOATING, WIDE, SUSPENDED, ALARMS, N_COUNTS };

static const char *const names[N_COUNTS] = {"ping", "pong", "churn", "floating", "wide", "suspended", "alarms"};
static atomic_long counts[N_COUNTS];
static atomic_int n_bad;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static long turn;

static void bad(const char *what)
{
    if (n_bad++ < 10)
        printf("bad: %s, errno %d\n", what, errno);
}

static void *play(void *number)
{
    long me = (long)number;
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (turn != me)
            pthread_cond_wait(&turned, &mutex);
        turn = !me;
        pthread_cond_broadcast(&turned);
        pthread_mutex_unlock(&mutex);
        counts[PING + me]++;
    }
    return NULL;
}

static void *triple(void *value)
{
    return (void *)((long)value * 3);
}

static void *churn(void *unused)
{
    (void)unused;
    for (long i = 0;; i++) {
        pthread_t thread;
        void *result;
        if (pthread_create(&thread, NULL, triple, (void *)i) || pthread_join(thread, &result))
            bad("a thread could not be made");
        else if ((long)result != 3 * i)
            bad("a thread's result");
        counts[CHURN]++;
    }
    return NULL;
}

static void *compute(void *unused)
{
    (void)unused;
    long double first_long = 0;
    double first = 0;
    for (;;) {
        long double sum_long = 0;
        double sum = 0;
        for (int i = 1; i < 5000; i++) {
            sum_long += 1.0L / i;
            sum += 1.0 / i;
        }
        if (first == 0) {
            first = sum;
            first_long = sum_long;
        }
        if (sum != first || sum_long != first_long)
            bad("a sum of fractions");
        counts[FLOATING]++;
    }
    return NULL;
}

/* Upper vector halves stay in the processor over a million instructions. */
static void *compute_wide(void *unused)
{
    (void)unused;
    if (!__builtin_cpu_supports("avx2")) {
        for (;;) {
            counts[WIDE]++;
            usleep(1000);
        }
    }
    unsigned long in[4] = {0x1111111111111111, 0x2222222222222222, 0x3333333333333333, 0x4444444444444444}, out[4];
    for (;;) {
        __asm__ volatile("vmovdqu %1, %%ymm7\n vmovdqu %1, %%ymm15\n mov $500000, %%ecx\n"
                         "1: dec %%ecx\n jnz 1b\n vpaddq %%ymm7, %%ymm15, %%ymm15\n vmovdqu %%ymm15, %0\n vzeroupper"
                         : "=m"(out)
                         : "m"(in)
                         : "ecx", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                           "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
        for (int i = 0; i < 4; i++)
            if (out[i] != 2 * in[i])
                bad("an upper vector half");
        counts[WIDE]++;
    }
    return NULL;
}

static void count_suspended(int signal)
{
    (void)signal;
    counts[SUSPENDED]++;
}

static void count_alarm(int signal)
{
    (void)signal;
    counts[ALARMS]++;
}

static void *suspend(void *unused)
{
    (void)unused;
    sigset_t mask;
    sigfillset(&mask);
    sigdelset(&mask, SIGUSR1);
    for (;;)
        if (sigsuspend(&mask) != -1 || errno != EINTR)
            bad("sigsuspend");
    return NULL;
}

static int have_all_run(void)
{
    for (int i = 0; i < N_COUNTS; i++)
        if (!counts[i])
            return 0;
    return 1;
}

int main(void)
{
    int is_told = 0;
    pthread_t thread, suspended;
    sigset_t all, term, mask, before;
    struct sigaction action = {.sa_handler = count_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = count_suspended;
    sigaction(SIGUSR1, &action, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    pthread_create(&thread, NULL, play, (void *)0);
    pthread_create(&thread, NULL, play, (void *)1);
    pthread_create(&thread, NULL, churn, NULL);
    pthread_create(&thread, NULL, compute, NULL);
    pthread_create(&thread, NULL, compute_wide, NULL);
    pthread_create(&suspended, NULL, suspend, NULL);
    sigemptyset(&before);
    sigaddset(&before, SIGTERM);
    sigaddset(&before, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    struct itimerval interval = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &interval, NULL);
    puts("ready");
    fflush(stdout);
    struct timespec pause = {0, 1000000};
    /* On a busy machine it is told before every thread has had its turn. */
    while (!is_told || !have_all_run()) {
        pthread_kill(suspended, SIGUSR1);
        int got = sigtimedwait(&term, NULL, &pause);
        if (got == SIGTERM) {
            is_told = 1;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            bad("sigtimedwait");
        pthread_sigmask(SIG_SETMASK, NULL, &mask);
        for (int number = 1; number < 32; number++)
            if (sigismember(&mask, number) != sigismember(&before, number))
                bad("the signal mask");
    }
    for (int i = 0; i < N_COUNTS; i++)
        printf("%s %s\n", names[i], counts[i] ? "ran" : "did not run");
    puts(n_bad ? "bad" : "good");
    return n_bad != 0;
}
