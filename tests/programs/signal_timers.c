/* what: alarm, the three interval timers, and timers of timer_create that send signals, to a thread, start threads, or do nothing
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t n[65], last_code, last_value, last_thread;
static sem_t posted;
static volatile int posted_value;

static void handler(int number, siginfo_t *info, void *context)
{
    (void)context;
    n[number]++;
    last_code = info->si_code;
    last_value = info->si_value.sival_int;
    last_thread = (int)syscall(SYS_gettid);
}

static void spin_until(int number, int count)
{
    volatile unsigned work = 0;
    while (n[number] < count)
        work = work * 3 + 1;
}

static void in_thread(union sigval value)
{
    posted_value = value.sival_int;
    sem_post(&posted);
}

static void *other(void *nothing)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 2, .sigev_value.sival_int = 77};
    event._sigev_un._tid = (int)syscall(SYS_gettid);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &(struct itimerspec){{0, 0}, {0, 2000000}}, NULL);
    while (n[SIGRTMIN + 2] == 0)
        ;
    printf("to this thread %d, code %d value %d\n", last_thread == (int)syscall(SYS_gettid), last_code, last_value);
    timer_delete(timer);
    return nothing;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    static const int signals[] = {SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1};
    for (int i = 0; i < 4; i++)
        sigaction(signals[i], &action, NULL);
    sigaction(SIGRTMIN + 2, &action, NULL);
    printf("alarm %u", alarm(1000));
    printf(" %d", alarm(500) > 900);
    printf(" %d\n", alarm(0) > 400);
    static const struct {
        int which, signal;
    } kinds[] = {{ITIMER_REAL, SIGALRM}, {ITIMER_VIRTUAL, SIGVTALRM}, {ITIMER_PROF, SIGPROF}};
    for (int i = 0; i < 3; i++) {
        struct itimerval old, timer = {{0, 1000}, {0, 1000}};
        setitimer(kinds[i].which, &timer, NULL);
        spin_until(kinds[i].signal, 5);
        getitimer(kinds[i].which, &old);
        printf("interval %ld %ld, code %d\n", old.it_interval.tv_sec, (long)old.it_interval.tv_usec / 4000, last_code);
        setitimer(kinds[i].which, &(struct itimerval){{0, 0}, {0, 0}}, &old);
        int then = n[kinds[i].signal];
        getitimer(kinds[i].which, &old);
        printf("off: %ld %ld, %d\n", old.it_value.tv_sec, (long)old.it_value.tv_usec, n[kinds[i].signal] - then);
    }
    printf("bad timer %d\n", setitimer(7, &(struct itimerval){{0, 0}, {0, 1}}, NULL));
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 4711};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &(struct itimerspec){{0, 500000}, {0, 500000}}, NULL);
    spin_until(SIGUSR1, 3);
    timer_settime(timer, 0, &(struct itimerspec){{0, 0}, {0, 0}}, NULL);
    printf("code %d value %d\n", last_code, last_value);
    /* Blocked for a while: one signal, and the number of those that were left out. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    timer_settime(timer, 0, &(struct itimerspec){{0, 200000}, {0, 200000}}, NULL);
    struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
    siginfo_t info;
    sigwaitinfo(&set, &info);
    printf("overruns %d %d\n", info.si_overrun > 5, timer_getoverrun(timer) == info.si_overrun);
    timer_delete(timer);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    event = (struct sigevent){.sigev_notify = SIGEV_NONE};
    timer_create(CLOCK_REALTIME, &event, &timer);
    timer_settime(timer, 0, &(struct itimerspec){{0, 0}, {100, 0}}, NULL);
    struct itimerspec left;
    timer_gettime(timer, &left);
    printf("left %d\n", left.it_value.tv_sec > 50 && left.it_value.tv_sec < 100);
    timer_delete(timer);
    sem_init(&posted, 0, 0);
    event = (struct sigevent){.sigev_notify = SIGEV_THREAD, .sigev_notify_function = in_thread, .sigev_value.sival_int = 12};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &(struct itimerspec){{0, 0}, {0, 1000000}}, NULL);
    sem_wait(&posted);
    printf("thread got %d\n", posted_value);
    timer_delete(timer);
    event = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 99};
    printf("bad signal %d", timer_create(CLOCK_MONOTONIC, &event, &timer));
    printf(" %s\n", strerrorname_np(errno));
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    pthread_join(thread, NULL);
    return 0;
}
