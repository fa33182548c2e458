/* Clocks, sleeps, alarms, interval timers, POSIX timers, timer descriptors, limits of waits: effects and errors. */
#include "cases.h"
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <time.h>

#define MILLISECOND 1000000L
#define SECOND (1000 * MILLISECOND)
#define NO_CLOCK 77

static volatile sig_atomic_t n_handled;
static volatile int thread_handled;
static siginfo_t told;

static void note(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    told = *info;
    thread_handled = gettid();
    n_handled++;
}

static void handle(int number, int flags)
{
    struct sigaction action = {.sa_flags = flags | SA_SIGINFO, .sa_sigaction = note};
    EXPECT(sigaction(number, &action, NULL), 0);
}

static sigset_t block(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    EXPECT(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    return set;
}

static long now(clockid_t clock)
{
    struct timespec time;
    EXPECT(clock_gettime(clock, &time), 0);
    return time.tv_sec * SECOND + time.tv_nsec;
}

static struct timespec spec(long nanoseconds)
{
    return (struct timespec){nanoseconds / SECOND, nanoseconds % SECOND};
}

static struct itimerspec every(long first, long next)
{
    return (struct itimerspec){.it_value = spec(first), .it_interval = spec(next)};
}

static const struct timespec bad_times[] = {{0, SECOND}, {0, -1}, {-1, 0}, {LONG_MIN, 0}};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static const clockid_t clocks[] = {CLOCK_REALTIME,
                                   CLOCK_MONOTONIC,
                                   CLOCK_PROCESS_CPUTIME_ID,
                                   CLOCK_THREAD_CPUTIME_ID,
                                   CLOCK_MONOTONIC_RAW,
                                   CLOCK_REALTIME_COARSE,
                                   CLOCK_MONOTONIC_COARSE,
                                   CLOCK_BOOTTIME,
                                   CLOCK_TAI};

static void clocks_go_forward(void)
{
    for (size_t i = 0; i < COUNT(clocks); i++) {
        struct timespec before, after;
        for (int turn = 0; turn < 50; turn++) {
            /* Through the vDSO and by the call itself. */
            EXPECT(clock_gettime(clocks[i], &before), 0);
            EXPECT(syscall(SYS_clock_gettime, clocks[i], &after), 0);
            EXPECT_TRUE(after.tv_nsec >= 0 && after.tv_nsec < SECOND);
            EXPECT_TRUE(after.tv_sec > before.tv_sec ||
                        (after.tv_sec == before.tv_sec && after.tv_nsec >= before.tv_nsec));
        }
    }
}

static void resolutions(void)
{
    struct timespec through_library, resolution;
    for (size_t i = 0; i < COUNT(clocks); i++) {
        EXPECT(clock_getres(clocks[i], &through_library), 0);
        EXPECT(syscall(SYS_clock_getres, clocks[i], &resolution), 0);
        EXPECT(resolution.tv_sec, 0);
        EXPECT(through_library.tv_nsec, resolution.tv_nsec);
        EXPECT(syscall(SYS_clock_getres, clocks[i], NULL), 0);
    }
    EXPECT_ERROR(syscall(SYS_clock_getres, NO_CLOCK, &resolution), EINVAL);
    EXPECT_ERROR(syscall(SYS_clock_getres, CLOCK_MONOTONIC, NOWHERE), EFAULT);
}

static void clock_errors(void)
{
    struct timespec time = {0};
    EXPECT_ERROR(syscall(SYS_clock_gettime, NO_CLOCK, &time), EINVAL);
    EXPECT_ERROR(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, NOWHERE), EFAULT);
    EXPECT_ERROR(syscall(SYS_clock_settime, CLOCK_MONOTONIC, &time), EINVAL);
    EXPECT_ERROR(syscall(SYS_clock_settime, NO_CLOCK, &time), EINVAL);
    EXPECT_ERROR(syscall(SYS_clock_settime, CLOCK_REALTIME, NOWHERE), EFAULT);
    EXPECT_ERROR(syscall(SYS_clock_settime, CLOCK_REALTIME, &bad_times[0]), EINVAL);
    EXPECT_ERROR(syscall(SYS_gettimeofday, NOWHERE, NULL), EFAULT);
    EXPECT_ERROR(syscall(SYS_time, NOWHERE), EFAULT);
    EXPECT_ERROR(syscall(SYS_times, NOWHERE), EFAULT);
    EXPECT_ERROR(syscall(SYS_getrusage, RUSAGE_SELF, NOWHERE), EFAULT);
    EXPECT_ERROR(syscall(SYS_getrusage, 5, &time), EINVAL);
}

static void clocks_of_processes(void)
{
    struct gate gate = make_gate(), end = make_gate();
    clockid_t clock, gone;
    EXPECT(clock_getcpuclockid(0, &clock), 0);
    EXPECT_TRUE(now(clock) <= now(CLOCK_PROCESS_CPUTIME_ID));
    pid_t child = fork();
    if (child == 0) {
        long until = now(CLOCK_PROCESS_CPUTIME_ID) + 3 * MILLISECOND;
        while (now(CLOCK_PROCESS_CPUTIME_ID) < until)
            ;
        open_gate(gate);
        pass_gate(end);
        _exit(0);
    }
    pass_gate(gate);
    EXPECT(clock_getcpuclockid(child, &gone), 0);
    EXPECT_TRUE(now(gone) >= 3 * MILLISECOND);
    open_gate(end);
    EXPECT(ended(child), 0);
    struct timespec time;
    EXPECT_ERROR(clock_gettime(gone, &time), EINVAL);
}

static void processor_time_counts(void)
{
    struct rusage before, after;
    struct tms times_before, times_after;
    getrusage(RUSAGE_SELF, &before);
    times(&times_before);
    long until = now(CLOCK_THREAD_CPUTIME_ID) + 30 * MILLISECOND;
    while (now(CLOCK_THREAD_CPUTIME_ID) < until)
        ;
    getrusage(RUSAGE_SELF, &after);
    times(&times_after);
    struct timeval used, in_kernel;
    timersub(&after.ru_utime, &before.ru_utime, &used);
    timersub(&after.ru_stime, &before.ru_stime, &in_kernel);
    EXPECT_TRUE(used.tv_sec + in_kernel.tv_sec > 0 || used.tv_usec + in_kernel.tv_usec >= 20000);
    EXPECT_TRUE(times_after.tms_utime + times_after.tms_stime > times_before.tms_utime + times_before.tms_stime);
}

static void sleep_errors(void)
{
    struct timespec time = spec(1);
    for (size_t i = 0; i < COUNT(bad_times); i++) {
        EXPECT_ERROR(syscall(SYS_nanosleep, &bad_times[i], NULL), EINVAL);
        EXPECT_ERROR(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &bad_times[i], NULL), EINVAL);
    }
    EXPECT_ERROR(syscall(SYS_nanosleep, NOWHERE, NULL), EFAULT);
    EXPECT_ERROR(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, NOWHERE, NULL), EFAULT);
    EXPECT_ERROR(syscall(SYS_clock_nanosleep, NO_CLOCK, 0, &time, NULL), EINVAL);
    EXPECT_ERROR(syscall(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, &time, NULL), EOPNOTSUPP);
    EXPECT_ERROR(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC_RAW, 0, &time, NULL), EOPNOTSUPP);
    EXPECT_ERROR(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC_COARSE, 0, &time, NULL), EOPNOTSUPP);
}

static void sleeps_last(void)
{
    static const clockid_t sleepers[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_TAI};
    struct timespec time = spec(2 * MILLISECOND);
    for (size_t i = 0; i < COUNT(sleepers); i++) {
        long before = now(CLOCK_MONOTONIC);
        EXPECT(clock_nanosleep(sleepers[i], 0, &time, NULL), 0);
        EXPECT_TRUE(now(CLOCK_MONOTONIC) - before >= 2 * MILLISECOND);
        struct timespec until = spec(now(sleepers[i]) + MILLISECOND);
        EXPECT(clock_nanosleep(sleepers[i], TIMER_ABSTIME, &until, NULL), 0);
        EXPECT_TRUE(now(sleepers[i]) >= until.tv_sec * SECOND + until.tv_nsec);
    }
    EXPECT(nanosleep(&(struct timespec){0}, NULL), 0);
    EXPECT(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &(struct timespec){0}, NULL), 0);
}

static void sleep_interrupted(void)
{
    struct timespec time = {50, 0}, left = {0};
    handle(SIGALRM, SA_RESTART); /* A sleep is never restarted for a handler. */
    ualarm(2000, 1000);
    EXPECT_ERROR(nanosleep(&time, &left), EINTR);
    EXPECT_TRUE(left.tv_sec == 49 || (left.tv_sec == 50 && left.tv_nsec == 0));
    EXPECT(clock_nanosleep(CLOCK_REALTIME, 0, &time, &left), EINTR);
    struct timespec until = {now(CLOCK_MONOTONIC) / SECOND + 50, 0}, kept = {7, 7};
    EXPECT(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, &kept), EINTR);
    EXPECT(kept.tv_sec, 7); /* What is left of it is known anyway. */
    EXPECT_ERROR(syscall(SYS_nanosleep, &time, NOWHERE), EFAULT);
    ualarm(0, 0);
    EXPECT_TRUE(n_handled >= 4);
}

static void sleep_stopped_and_continued(void)
{
    struct gate gate = make_gate();
    pid_t child = fork();
    if (child == 0) {
        struct timespec time = spec(20 * MILLISECOND);
        long before = now(CLOCK_MONOTONIC);
        open_gate(gate);
        int result = nanosleep(&time, NULL);
        _exit(result == 0 && now(CLOCK_MONOTONIC) - before >= 20 * MILLISECOND ? 7 : 8);
    }
    pass_gate(gate);
    int status;
    kill(child, SIGSTOP);
    EXPECT(waitpid(child, &status, WUNTRACED), child);
    EXPECT_TRUE(WIFSTOPPED(status));
    kill(child, SIGCONT);
    EXPECT(ended(child), 7);
}

static void alarms(void)
{
    handle(SIGALRM, 0);
    EXPECT(alarm(100), CASE_SECONDS);
    EXPECT(alarm(50), 100);
    EXPECT(alarm(0), 50);
    EXPECT(alarm(0), 0);
    EXPECT(ualarm(500000, 0), 0);
    EXPECT(alarm(0), 1); /* Never told as none. */
    struct itimerval timer;
    EXPECT(alarm(20), 0);
    EXPECT(getitimer(ITIMER_REAL, &timer), 0); /* It is the same timer. */
    EXPECT_TRUE(timer.it_value.tv_sec == 19 || timer.it_value.tv_sec == 20);
    EXPECT(timer.it_interval.tv_sec + timer.it_interval.tv_usec, 0);
    pid_t child = fork();
    if (child == 0)
        _exit((int)alarm(0));
    EXPECT(ended(child), 0);
    EXPECT_TRUE(alarm(0) >= 19);
    EXPECT(n_handled, 0);
}

static void interval_errors(void)
{
    struct itimerval timer = {.it_value = {0, 1000000}}, got;
    EXPECT_ERROR(setitimer(3, &(struct itimerval){0}, NULL), EINVAL);
    EXPECT_ERROR(getitimer(3, &got), EINVAL);
    EXPECT_ERROR(getitimer(-1, &got), EINVAL);
    EXPECT_ERROR(setitimer(ITIMER_REAL, &timer, NULL), EINVAL);
    timer = (struct itimerval){.it_value = {-1, 0}};
    EXPECT_ERROR(setitimer(ITIMER_REAL, &timer, NULL), EINVAL);
    timer = (struct itimerval){.it_interval = {0, -1}};
    EXPECT_ERROR(setitimer(ITIMER_REAL, &timer, NULL), EINVAL);
    EXPECT_ERROR(syscall(SYS_setitimer, ITIMER_REAL, NOWHERE, NULL), EFAULT);
    EXPECT_ERROR(syscall(SYS_getitimer, ITIMER_REAL, NOWHERE), EFAULT);
    timer = (struct itimerval){.it_value = {50, 0}};
    EXPECT_ERROR(syscall(SYS_setitimer, ITIMER_REAL, &timer, NOWHERE), EFAULT);
    EXPECT(getitimer(ITIMER_REAL, &got), 0);
    EXPECT_TRUE(got.it_value.tv_sec >= 49); /* It was set all the same. */
    EXPECT(syscall(SYS_setitimer, ITIMER_REAL, NULL, &got), 0); /* No value ends it. */
    EXPECT_TRUE(got.it_value.tv_sec >= 49);
    EXPECT(getitimer(ITIMER_REAL, &got), 0);
    EXPECT(got.it_value.tv_sec + got.it_value.tv_usec, 0);
}

static void intervals(void)
{
    static const struct {
        int which, number;
    } timers[] = {{ITIMER_REAL, SIGALRM}, {ITIMER_VIRTUAL, SIGVTALRM}, {ITIMER_PROF, SIGPROF}};
    for (size_t i = 0; i < COUNT(timers); i++) {
        struct itimerval timer = {.it_value = {0, 3000}, .it_interval = {0, 2000}}, got, none = {0};
        n_handled = 0;
        handle(timers[i].number, 0);
        EXPECT(setitimer(timers[i].which, &timer, NULL), 0);
        while (n_handled < 4)
            ;
        EXPECT(told.si_code, SI_KERNEL);
        EXPECT(setitimer(timers[i].which, &none, &got), 0);
        /* Processor time counts in ticks. */
        EXPECT_TRUE(got.it_interval.tv_usec >= 2000 && got.it_interval.tv_usec <= 10000);
        EXPECT(getitimer(timers[i].which, &got), 0);
        EXPECT(got.it_interval.tv_usec + got.it_value.tv_usec, 0);
    }
}

static void interval_of_one(void)
{
    struct itimerval timer = {.it_value = {0, 1000}}, got;
    handle(SIGALRM, 0);
    EXPECT(setitimer(ITIMER_REAL, &timer, NULL), 0);
    while (n_handled == 0)
        ;
    EXPECT(getitimer(ITIMER_REAL, &got), 0);
    EXPECT(got.it_value.tv_sec + got.it_value.tv_usec, 0);
    EXPECT(n_handled, 1);
}

static void kept_by_new_programs(void)
{
    pid_t child = fork();
    if (child == 0) {
        timer_t timer;
        struct itimerspec soon = every(50 * SECOND, 0);
        timer_create(CLOCK_MONOTONIC, NULL, &timer);
        timer_settime(timer, 0, &soon, NULL);
        alarm(50);
        char id[20];
        snprintf(id, sizeof id, "%d", *(int *)&timer);
        execl("/proc/self/exe", "again", "--again", id, NULL);
        _exit(99);
    }
    EXPECT(ended(child), 42);
}

static void creation_errors(void)
{
    timer_t timer;
    int id;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    EXPECT_ERROR(syscall(SYS_timer_create, NO_CLOCK, &event, &id), EINVAL);
    EXPECT_ERROR(syscall(SYS_timer_create, CLOCK_MONOTONIC_COARSE, &event, &id), EOPNOTSUPP);
    EXPECT_ERROR(syscall(SYS_timer_create, CLOCK_MONOTONIC, NOWHERE, &id), EFAULT);
    EXPECT_ERROR(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, NOWHERE), EFAULT);
    event.sigev_signo = 65;
    EXPECT_ERROR(timer_create(CLOCK_MONOTONIC, &event, &timer), EINVAL);
    event.sigev_signo = 0;
    EXPECT_ERROR(timer_create(CLOCK_MONOTONIC, &event, &timer), EINVAL);
    event.sigev_signo = SIGUSR1;
    event.sigev_notify = 77;
    EXPECT_ERROR(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id), EINVAL);
    event.sigev_notify = SIGEV_THREAD_ID;
    event._sigev_un._tid = getppid();
    EXPECT_ERROR(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id), EINVAL);
}

static void setting_errors(void)
{
    int id;
    struct itimerspec timer = every(SECOND, 0), got;
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    EXPECT(syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &id), 0);
    EXPECT_ERROR(syscall(SYS_timer_settime, id + 1000, 0, &timer, NULL), EINVAL);
    EXPECT_ERROR(syscall(SYS_timer_gettime, id + 1000, &got), EINVAL);
    EXPECT_ERROR(syscall(SYS_timer_getoverrun, id + 1000), EINVAL);
    EXPECT_ERROR(syscall(SYS_timer_delete, id + 1000), EINVAL);
    EXPECT_ERROR(syscall(SYS_timer_settime, id, 0, NULL, NULL), EINVAL);
    EXPECT_ERROR(syscall(SYS_timer_settime, id, 0, NOWHERE, NULL), EFAULT);
    EXPECT_ERROR(syscall(SYS_timer_gettime, id, NOWHERE), EFAULT);
    for (size_t i = 0; i < COUNT(bad_times); i++) {
        struct itimerspec first = {.it_value = bad_times[i]}, next = {.it_interval = bad_times[i]};
        EXPECT_ERROR(syscall(SYS_timer_settime, id, 0, &first, NULL), EINVAL);
        EXPECT_ERROR(syscall(SYS_timer_settime, id, 0, &next, NULL), EINVAL);
    }
    EXPECT_ERROR(syscall(SYS_timer_settime, id, 0, &timer, NOWHERE), EFAULT);
    EXPECT(syscall(SYS_timer_gettime, id, &got), 0);
    EXPECT_TRUE(got.it_value.tv_sec + got.it_value.tv_nsec > 0); /* Set all the same. */
    EXPECT(syscall(SYS_timer_delete, id), 0);
    EXPECT_ERROR(syscall(SYS_timer_delete, id), EINVAL);
}

static timer_t timer_with(clockid_t clock, int notify, int number, int value)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = notify, .sigev_signo = number, .sigev_value.sival_int = value};
    event._sigev_un._tid = gettid();
    EXPECT(timer_create(clock, &event, &timer), 0);
    return timer;
}

static void signals_of_timers(void)
{
    sigset_t set = block(SIGUSR1);
    siginfo_t info;
    timer_t timer = timer_with(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGUSR1, 1234);
    struct itimerspec soon = every(MILLISECOND, 0), got;
    EXPECT(timer_settime(timer, 0, &soon, NULL), 0);
    EXPECT(sigwaitinfo(&set, &info), SIGUSR1);
    EXPECT(info.si_code, SI_TIMER);
    EXPECT(info.si_value.sival_int, 1234);
    EXPECT(info.si_overrun, 0);
    EXPECT(timer_gettime(timer, &got), 0);
    EXPECT(got.it_value.tv_sec + got.it_value.tv_nsec, 0);
    EXPECT(timer_getoverrun(timer), 0);
    EXPECT(timer_delete(timer), 0);
    /* Without a description it is SIGALRM, with the timer's number. */
    sigset_t second = block(SIGALRM);
    EXPECT(timer_create(CLOCK_REALTIME, NULL, &timer), 0);
    EXPECT(timer_settime(timer, 0, &soon, NULL), 0);
    EXPECT(sigwaitinfo(&second, &info), SIGALRM);
    EXPECT(info.si_code, SI_TIMER);
}

static void overruns(void)
{
    sigset_t set = block(SIGRTMIN);
    siginfo_t info;
    timer_t timer = timer_with(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGRTMIN, 0);
    struct itimerspec fast = every(100000, 100000), none = {0}, old;
    EXPECT(timer_settime(timer, 0, &fast, NULL), 0);
    EXPECT(clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){0, 5 * MILLISECOND}, NULL), 0);
    EXPECT(sigwaitinfo(&set, &info), SIGRTMIN);
    EXPECT_TRUE(info.si_overrun >= 40);
    EXPECT(timer_getoverrun(timer), info.si_overrun);
    EXPECT(timer_settime(timer, 0, &none, &old), 0);
    EXPECT(old.it_interval.tv_nsec, 100000);
    /* One at a time waits, however often it went off. */
    struct timespec now_then = {0};
    int n_left = 0;
    while (sigtimedwait(&set, &info, &now_then) == SIGRTMIN)
        n_left++;
    EXPECT_TRUE(n_left <= 1);
}

static void timers_of_all_clocks(void)
{
    static const clockid_t used[] = {CLOCK_REALTIME, CLOCK_MONOTONIC,          CLOCK_BOOTTIME,
                                     CLOCK_TAI,      CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID};
    handle(SIGUSR1, 0);
    for (size_t i = 0; i < COUNT(used); i++) {
        timer_t timer = timer_with(used[i], SIGEV_SIGNAL, SIGUSR1, (int)i);
        struct itimerspec soon = every(2 * MILLISECOND, MILLISECOND), none = {0};
        n_handled = 0;
        EXPECT(timer_settime(timer, 0, &soon, NULL), 0);
        while (n_handled < 3)
            ;
        EXPECT(told.si_value.sival_int, i);
        EXPECT(timer_settime(timer, 0, &none, NULL), 0);
        EXPECT(timer_delete(timer), 0);
    }
}

static void absolute_times(void)
{
    timer_t timer = timer_with(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGUSR1, 5);
    sigset_t set = block(SIGUSR1);
    siginfo_t info;
    struct itimerspec past = every(1, 0), later = every(now(CLOCK_MONOTONIC) + 100 * SECOND, 0), got;
    EXPECT(timer_settime(timer, TIMER_ABSTIME, &past, NULL), 0);
    EXPECT(sigwaitinfo(&set, &info), SIGUSR1);
    EXPECT(timer_settime(timer, TIMER_ABSTIME, &later, NULL), 0);
    EXPECT(timer_gettime(timer, &got), 0); /* What is left, not when. */
    EXPECT_TRUE(got.it_value.tv_sec >= 90 && got.it_value.tv_sec <= 100);
}

static void timers_that_say_nothing(void)
{
    timer_t timer = timer_with(CLOCK_MONOTONIC, SIGEV_NONE, 0, 0);
    struct itimerspec soon = every(100 * SECOND, 7 * SECOND), got, old;
    EXPECT(timer_gettime(timer, &got), 0);
    EXPECT(got.it_value.tv_sec + got.it_value.tv_nsec, 0);
    EXPECT(timer_settime(timer, 0, &soon, &old), 0);
    EXPECT(old.it_value.tv_sec + old.it_value.tv_nsec, 0);
    EXPECT(timer_gettime(timer, &got), 0);
    EXPECT_TRUE(got.it_value.tv_sec == 99 || got.it_value.tv_sec == 100);
    EXPECT(got.it_interval.tv_sec, 7);
}

static void *wait_for_own(void *unused)
{
    timer_t timer = timer_with(CLOCK_MONOTONIC, SIGEV_THREAD_ID, SIGUSR1, 0);
    struct itimerspec soon = every(MILLISECOND, 0);
    thread_handled = 0;
    timer_settime(timer, 0, &soon, NULL);
    while (!thread_handled)
        ;
    return thread_handled == gettid() ? unused : &told;
}

static void timers_of_one_thread(void)
{
    pthread_t threads[3];
    void *result;
    handle(SIGUSR1, 0);
    for (int i = 0; i < 3; i++) {
        EXPECT(pthread_create(&threads[i], NULL, wait_for_own, NULL), 0);
        EXPECT(pthread_join(threads[i], &result), 0);
        EXPECT_TRUE(result == NULL);
    }
}

static volatile int n_called;

static void called(union sigval value)
{
    n_called += value.sival_int;
}

static void timers_that_call(void)
{
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = 5};
    event.sigev_notify_function = called;
    struct itimerspec soon = every(MILLISECOND, 0);
    EXPECT(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    EXPECT(timer_settime(timer, 0, &soon, NULL), 0);
    while (n_called == 0)
        ;
    EXPECT(n_called, 5);
    EXPECT(timer_delete(timer), 0);
}

static void timers_are_not_inherited(void)
{
    timer_t timer = timer_with(CLOCK_MONOTONIC, SIGEV_NONE, 0, 0);
    pid_t child = fork();
    if (child == 0) {
        struct itimerspec got;
        _exit(syscall(SYS_timer_gettime, *(int *)&timer, &got) == -1 && errno == EINVAL ? 7 : 8);
    }
    EXPECT(ended(child), 7);
}

static void deleted_with_its_signal(void)
{
    sigset_t set = block(SIGUSR1), pending;
    siginfo_t info;
    timer_t timer = timer_with(CLOCK_MONOTONIC, SIGEV_SIGNAL, SIGUSR1, 0);
    struct itimerspec soon = every(1, 0), none = {0};
    struct timespec limit = {0};
    EXPECT(timer_settime(timer, 0, &soon, NULL), 0);
    do
        sigpending(&pending);
    while (!sigismember(&pending, SIGUSR1));
    EXPECT(timer_settime(timer, 0, &none, NULL), 0);
    EXPECT(timer_delete(timer), 0);
    /* The signal of a timer that is gone is taken back, or stays, as the kernel has it; but nothing comes twice. */
    (void)sigtimedwait(&set, &info, &limit);
    EXPECT_ERROR(sigtimedwait(&set, &info, &limit), EAGAIN);
}

static void descriptor_errors(void)
{
    int file = memfd_create("no timer", 0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec soon = every(SECOND, 0), got;
    uint64_t count;
    EXPECT_ERROR(timerfd_create(NO_CLOCK, 0), EINVAL);
    EXPECT_ERROR(timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0), EINVAL);
    EXPECT_ERROR(timerfd_create(CLOCK_MONOTONIC, 77), EINVAL);
    EXPECT_ERROR(timerfd_settime(900, 0, &soon, NULL), EBADF);
    EXPECT_ERROR(timerfd_settime(file, 0, &soon, NULL), EINVAL);
    EXPECT_ERROR(timerfd_gettime(900, &got), EBADF);
    EXPECT_ERROR(timerfd_gettime(file, &got), EINVAL);
    EXPECT_ERROR(timerfd_settime(timer, 77, &soon, NULL), EINVAL);
    EXPECT_ERROR(syscall(SYS_timerfd_settime, timer, 0, NOWHERE, NULL), EFAULT);
    EXPECT_ERROR(syscall(SYS_timerfd_gettime, timer, NOWHERE), EFAULT);
    for (size_t i = 0; i < COUNT(bad_times); i++)
        EXPECT_ERROR(timerfd_settime(timer, 0, &(struct itimerspec){.it_value = bad_times[i]}, NULL), EINVAL);
    EXPECT_ERROR(read(timer, &count, sizeof count), EAGAIN);
    EXPECT_ERROR(read(timer, &count, sizeof count - 1), EINVAL);
    EXPECT_ERROR(write(timer, &count, sizeof count), EINVAL);
    EXPECT(fcntl(timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC), F_GETFD), FD_CLOEXEC);
}

static void descriptors_count(void)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec fast = every(MILLISECOND, 200000), none = {0}, got;
    uint64_t count = 0;
    struct pollfd polled = {timer, POLLIN, 0};
    EXPECT(timerfd_settime(timer, 0, &fast, NULL), 0);
    EXPECT(poll(&polled, 1, -1), 1);
    EXPECT(clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){0, 5 * MILLISECOND}, NULL), 0);
    EXPECT(read(timer, &count, sizeof count), sizeof count);
    EXPECT_TRUE(count >= 20);
    EXPECT(timerfd_gettime(timer, &got), 0);
    EXPECT(got.it_interval.tv_nsec, 200000);
    EXPECT(timerfd_settime(timer, 0, &none, &got), 0);
    EXPECT(got.it_interval.tv_nsec, 200000);
    EXPECT(poll(&polled, 1, 0), 0);
}

static void descriptors_at_a_time(void)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec past = every(1, 0), then = every(now(CLOCK_MONOTONIC) + MILLISECOND, 0);
    uint64_t count = 0;
    EXPECT(timerfd_settime(timer, TFD_TIMER_ABSTIME, &past, NULL), 0);
    EXPECT(read(timer, &count, sizeof count), sizeof count);
    EXPECT(count, 1);
    EXPECT(timerfd_settime(timer, TFD_TIMER_ABSTIME, &then, NULL), 0);
    EXPECT(read(timer, &count, sizeof count), sizeof count);
    EXPECT_TRUE(now(CLOCK_MONOTONIC) >= then.it_value.tv_sec * SECOND + then.it_value.tv_nsec);
}

static void descriptors_are_inherited(void)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec soon = every(MILLISECOND, 0);
    uint64_t count;
    EXPECT(timerfd_settime(timer, 0, &soon, NULL), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(read(timer, &count, sizeof count) == sizeof count && count == 1 ? 7 : 8);
    EXPECT(ended(child), 7);
    struct pollfd polled = {timer, POLLIN, 0};
    EXPECT(poll(&polled, 1, 0), 0); /* The child has taken it. */
}

static void read_of_descriptor_interrupted(void)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec later = every(50 * SECOND, 0);
    uint64_t count;
    EXPECT(timerfd_settime(timer, 0, &later, NULL), 0);
    handle(SIGALRM, 0);
    ualarm(2000, 1000);
    EXPECT_ERROR(read(timer, &count, sizeof count), EINTR);
    ualarm(0, 0);
}

static void limits_of_waits(void)
{
    struct gate gate = make_gate();
    struct pollfd polled = {gate.ends[0], POLLIN, 0};
    struct timespec time = spec(2 * MILLISECOND);
    struct timeval left = {0, 2000};
    struct epoll_event event = {.events = EPOLLIN};
    int poller = epoll_create1(0);
    fd_set set;
    EXPECT(epoll_ctl(poller, EPOLL_CTL_ADD, gate.ends[0], &event), 0);
    long before = now(CLOCK_MONOTONIC);
    EXPECT(poll(&polled, 1, 2), 0);
    EXPECT(ppoll(&polled, 1, &time, NULL), 0);
    EXPECT(epoll_wait(poller, &event, 1, 2), 0);
    FD_ZERO(&set);
    FD_SET(gate.ends[0], &set);
    EXPECT(select(gate.ends[0] + 1, &set, NULL, NULL, &left), 0);
    EXPECT(FD_ISSET(gate.ends[0], &set), 0);
    EXPECT(left.tv_sec + left.tv_usec, 0); /* The kernel writes what is left of it. */
    EXPECT(pselect(0, NULL, NULL, NULL, &time, NULL), 0);
    EXPECT_TRUE(now(CLOCK_MONOTONIC) - before >= 10 * MILLISECOND);
}

static void errors_of_limits(void)
{
    struct pollfd polled = {0};
    struct epoll_event event;
    int poller = epoll_create1(0);
    struct timeval bad = {0, -1};
    for (size_t i = 0; i < COUNT(bad_times); i++) {
        EXPECT_ERROR(syscall(SYS_ppoll, &polled, 0, &bad_times[i], NULL, 0), EINVAL);
        EXPECT_ERROR(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &bad_times[i], NULL), EINVAL);
        EXPECT_ERROR(syscall(SYS_epoll_pwait2, poller, &event, 1, &bad_times[i], NULL, 0), EINVAL);
    }
    EXPECT_ERROR(select(0, NULL, NULL, NULL, &bad), EINVAL);
    EXPECT_ERROR(syscall(SYS_ppoll, &polled, 0, NOWHERE, NULL, 0), EFAULT);
    EXPECT_ERROR(syscall(SYS_select, 0, NULL, NULL, NULL, NOWHERE), EFAULT);
    EXPECT_ERROR(epoll_wait(poller, &event, 0, 0), EINVAL);
}

static void processor_time_ends(void)
{
    pid_t child = fork();
    if (child == 0) {
        /* In seconds of processor time: the least is one. */
        struct rlimit limit = {1, 3};
        struct itimerval fast = {.it_value = {0, 20000}};
        handle(SIGXCPU, 0);
        handle(SIGVTALRM, 0);
        setrlimit(RLIMIT_CPU, &limit);
        setitimer(ITIMER_VIRTUAL, &fast, NULL);
        while (n_handled == 0)
            ;
        _exit(told.si_signo == SIGVTALRM ? 7 : 8);
    }
    EXPECT(ended(child), 7);
}

static void storm(void)
{
    volatile long sum = 0;
    struct itimerval fast = {.it_value = {0, 50}, .it_interval = {0, 50}}, none = {0};
    handle(SIGALRM, SA_RESTART);
    EXPECT(setitimer(ITIMER_REAL, &fast, NULL), 0);
    for (long i = 0; i < 200000 || n_handled < 20; i++)
        sum += i & 1;
    EXPECT(setitimer(ITIMER_REAL, &none, NULL), 0);
    EXPECT_TRUE(sum >= 100000);
}

static const struct one_case cases[] = {
    CASE(clocks_go_forward),
    CASE(resolutions),
    CASE(clock_errors),
    CASE(clocks_of_processes),
    CASE(processor_time_counts),
    CASE(sleep_errors),
    CASE(sleeps_last),
    CASE(sleep_interrupted),
    CASE(sleep_stopped_and_continued),
    CASE(alarms),
    CASE(interval_errors),
    CASE(intervals),
    CASE(interval_of_one),
    CASE(kept_by_new_programs),
    CASE(creation_errors),
    CASE(setting_errors),
    CASE(signals_of_timers),
    CASE(overruns),
    CASE(timers_of_all_clocks),
    CASE(absolute_times),
    CASE(timers_that_say_nothing),
    CASE(timers_of_one_thread),
    CASE(timers_that_call),
    CASE(timers_are_not_inherited),
    CASE(deleted_with_its_signal),
    CASE(descriptor_errors),
    CASE(descriptors_count),
    CASE(descriptors_at_a_time),
    CASE(descriptors_are_inherited),
    CASE(read_of_descriptor_interrupted),
    CASE(limits_of_waits),
    CASE(errors_of_limits),
    CASE(processor_time_ends),
    CASE(storm),
};

/* What a program finds that another one was executed by: its alarm goes on, its timers are gone. */
static int look_again(const char *id)
{
    struct itimerspec got;
    unsigned left = alarm(0);
    int is_gone = syscall(SYS_timer_gettime, atoi(id), &got) == -1 && errno == EINVAL;
    return left >= 45 && left <= 50 && is_gone ? 42 : 43;
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "--again") == 0)
        return look_again(arguments[2]);
    return RUN_CASES(cases, arguments + 1);
}
