// Makes calls that others may have go another way, and says what it got of each: numbers that are small, or an error's; of others that they
// are its own. What to do is the first argument; all threads tell at the end, one after the other.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_THREADS 3
#define N_CALLS 12

static volatile sig_atomic_t n_signals;
static volatile int is_over;

static void on_signal(int signal) {
    (void)signal;
    n_signals++;
}

// What the kernel gave, without the C library in between.
static long made(long number, long a, long b, long c) {
    long result;
    register long d __asm__("r10") = 0;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d) : "rcx", "r11", "memory");
    return result;
}

static void tell(const char *who, const char *what, long result) {
    if (result > 200)
        printf("%s %s own\n", who, what);
    else
        printf("%s %s %ld\n", who, what, result);
}

struct told {
    char name[16];
    long parents[N_CALLS], files[N_CALLS], bytes[N_CALLS], closed[N_CALLS], copies[2];
};

static void *make_calls(void *given) {
    struct told *told = given;
    for (int i = 0; i < N_CALLS; i++)
        told->parents[i] = made(SYS_getppid, 0, 0, 0);
    for (int i = 0; i < N_CALLS; i++) {
        char byte;
        const char *path = i % 2 ? "/etc/hostname" : "/etc/passwd";
        long file = made(SYS_openat, AT_FDCWD, (long)path, O_RDONLY);
        // Which number is free depends on the other threads.
        told->files[i] = file >= 0 ? 0 : file;
        told->bytes[i] = made(SYS_read, file, (long)&byte, 1);
        told->closed[i] = made(SYS_close, file, 0, 0);
    }
    told->copies[0] = made(SYS_dup, -1, 0, 0);
    told->copies[1] = made(SYS_dup, -2, 0, 0);
    return NULL;
}

static void tell_all(const struct told *told) {
    for (int i = 0; i < N_CALLS; i++) {
        tell(told->name, "getppid", told->parents[i]);
        tell(told->name, "openat", told->files[i]);
        tell(told->name, "read", told->bytes[i]);
        tell(told->name, "close", told->closed[i]);
    }
    tell(told->name, "dup", told->copies[0]);
    tell(told->name, "dup", told->copies[1]);
}

static void run_threads(void) {
    pthread_t threads[N_THREADS];
    int is_there[N_THREADS];
    static struct told told[N_THREADS + 1];
    for (int i = 0; i < N_THREADS; i++) {
        sprintf(told[i].name, "thread%d", i);
        is_there[i] = pthread_create(&threads[i], NULL, make_calls, &told[i]) == 0;
    }
    strcpy(told[N_THREADS].name, "main");
    make_calls(&told[N_THREADS]);
    for (int i = 0; i < N_THREADS; i++)
        if (is_there[i])
            pthread_join(threads[i], NULL);
        else
            printf("%s is not there\n", told[i].name);
    for (int i = 0; i <= N_THREADS; i++)
        tell_all(&told[i]);
}

static void run_others(void) {
    signal(SIGUSR1, on_signal);
    tell("main", "getuid", made(SYS_getuid, 0, 0, 0));
    tell("main", "geteuid", made(SYS_geteuid, 0, 0, 0));
    tell("main", "getgid", made(SYS_getgid, 0, 0, 0));
    tell("main", "signals", n_signals);
    tell("main", "getegid", made(SYS_getegid, 0, 0, 0));
    tell("main", "signals", n_signals);
    void *memory = mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    tell("main", "mmap", memory == MAP_FAILED ? -errno : (long)memory);
    fflush(stdout);
    long child = fork();
    tell("main", "fork", child < 0 ? -errno : child == 0 ? 0 : 1000);
    if (child == 0) {
        struct told told = {.name = "child"};
        make_calls(&told);
        tell_all(&told);
        fflush(stdout);
        _exit(0);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
    execl("/no/such/program", "it", NULL);
    tell("main", "execve", -errno);
}

// Functions of the C library.
static void run_functions(void) {
    for (int i = 0; i < 8; i++) {
        errno = 0;
        void *memory = malloc(100000 + i);
        printf("malloc %s %d\n", memory ? "there" : "NULL", errno);
        free(memory);
    }
    for (int i = 0; i < 6; i++) {
        errno = 0;
        int file = open(i % 2 ? "/etc/hostname" : "/etc/passwd", O_RDONLY);
        printf("open %d %d\n", file >= 0, errno);
        if (file >= 0)
            close(file);
    }
    errno = 0;
    FILE *file = fopen("/etc/hostname", "r");
    printf("fopen %d %d\n", file != NULL, errno);
    printf("fclose %d\n", file ? fclose(file) : 0);
}

// Paths, some of which nobody can read, and none of which is there.
static void run_paths(void) {
    static char many[6000];
    const long page = sysconf(_SC_PAGESIZE);
    char *end = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(end + page, page);
    memset(many, 'a', sizeof many - 1);
    // Up to the last byte that there is: with an end, and without one.
    char *whole = strcpy(end + page - 6, "/none");
    const char *paths[] = {"/none/a", "/none/[b]", "/none/\xff\n\"", "/none/*", "", whole, many, (char *)8, NULL, (char *)-8L};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        printf("path %zu %ld\n", i, made(SYS_openat, AT_FDCWD, (long)paths[i], O_RDONLY));
    end[page - 1] = 'e';
    printf("path end %ld\n", made(SYS_openat, AT_FDCWD, (long)whole, O_RDONLY));
    printf("rename %ld\n", made(SYS_rename, (long)"/none/a", (long)"/none/b", 0));
}

__attribute__((noinline)) int return_late(void) {
    return made(SYS_getuid, 0, 0, 0) >= 0;
}

static void *wait_long(void *given) {
    (void)given;
    return_late();
    is_over = 1;
    return NULL;
}

// One thread makes a call that others may delay; this one goes on, and ends the process in the way that is asked for.
static void run_beside(const char *end) {
    pthread_t thread;
    pthread_create(&thread, NULL, wait_long, NULL);
    long sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += made(SYS_getppid, 0, 0, 0) > 0;
    printf("beside %ld %d\n", sum, is_over);
    fflush(stdout);
    if (!strcmp(end, "signal"))
        kill(getpid(), SIGTERM);
    if (!strcmp(end, "join"))
        pthread_join(thread, NULL);
    exit(is_over);
}

// Many calls, while signals come whose handler makes such calls, too; how often each gave something else.
static void on_alarm(int signal) {
    (void)signal;
    n_signals += made(SYS_getuid, 0, 0, 0) == 7;
}

static void run_storm(void) {
    const struct itimerval often = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
    long n_given = 0, n_waits = 0;
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 20000; i++) {
        n_given += made(SYS_getppid, 0, 0, 0) == 7;
        if (i % 50 == 0)
            n_waits += made(SYS_poll, 0, 0, 1) == 3;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("given %ld %ld %d\n", n_given, n_waits, n_signals > 0);
}

// Calls that a handler leaves by a jump, again and again from one place.
static sigjmp_buf before_call;

static void on_alarm_jump(int signal) {
    (void)signal;
    siglongjmp(before_call, 1);
}

static void run_jumps(void) {
    const struct itimerval soon = {{0, 0}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    int ends[2];
    volatile int n_calls = 0, n_given = 0, n_jumps = 0;
    signal(SIGALRM, on_alarm_jump);
    if (pipe(ends))
        exit(1);
    static char byte;
    for (volatile int turn = 0; turn < 12; turn++) {
        if (sigsetjmp(before_call, 1) == 0) {
            setitimer(ITIMER_REAL, &soon, NULL);
            n_calls++;
            // Nothing comes: it ends by the handler, if it is made.
            n_given += made(SYS_read, ends[0], (long)&byte, 1) == 5;
            setitimer(ITIMER_REAL, &never, NULL);
        } else {
            n_jumps++;
        }
    }
    printf("jumps %d %d %d\n", n_calls, n_given, n_jumps);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void run_times(void) {
    double before = now();
    made(SYS_getuid, 0, 0, 0);
    printf("getuid %.6f\n", now() - before);
    before = now();
    made(SYS_geteuid, 0, 0, 0);
    printf("geteuid %.6f\n", now() - before);
    before = now();
    free(malloc(100000));
    printf("malloc %.6f\n", now() - before);
}

// Functions that others may have return late: one that calls itself, one that is left by a jump, one that is not entered.
__attribute__((noinline)) int nest(int depth) {
    double before = now();
    int sum = depth ? 1 + nest(depth - 1) : 0;
    if (depth)
        printf("nest%d %.6f\n", depth - 1, now() - before);
    return sum;
}

static jmp_buf outside;

__attribute__((noinline)) void leave(void) {
    longjmp(outside, 1);
}

__attribute__((noinline)) int enter(int number) {
    return number + 1;
}

static void run_returns(void) {
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, on_signal);
    setitimer(ITIMER_REAL, &often, NULL);
    printf("sum %d\n", nest(3));
    setitimer(ITIMER_REAL, &never, NULL);
    if (!setjmp(outside))
        leave();
    double before = now();
    int given = enter(1);
    printf("enter%d %.6f\n", given, now() - before);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    printf("cpu %ld.%06ld\n", used.ru_utime.tv_sec + used.ru_stime.tv_sec, used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    printf("signals %d\n", n_signals > 0);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "threads"))
        run_threads();
    else if (!strcmp(what, "others"))
        run_others();
    else if (!strcmp(what, "functions"))
        run_functions();
    else if (!strcmp(what, "paths"))
        run_paths();
    else if (!strcmp(what, "storm"))
        run_storm();
    else if (!strcmp(what, "jumps"))
        run_jumps();
    else if (!strcmp(what, "returns"))
        run_returns();
    else if (!strcmp(what, "times"))
        run_times();
    else
        run_beside(what);
    return 0;
}
