/* Comes to a function by all sorts of ways for a line, and has the C library say who called each time: large frames, frames
   that are aligned anew, handlers of signals on this stack and on another one, exceptions, threads, libraries that come and
   go, children. Arguments: two such libraries.

   Says for a line, of each time (of an l: only threads, while libraries come and go): the thread's number, and the addresses where the calls go on. */
#include <alloca.h>
#include <atomic>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT __attribute__((noipa))

constexpr int MAX_FRAMES = 80, MAX_NOTES = 4096, N_THREADS = 8;

struct Note {
    int tid, n_frames;
    void *frames[MAX_FRAMES];
};

static struct Log {
    std::atomic<int> n;
    Note notes[MAX_NOTES];
} *shared_log;

static volatile long sum;
static char *guarded;

/* Of the frames the first two are this function's, and the one's that was come to. */
KEPT void take_note(void)
{
    Note *note = &shared_log->notes[shared_log->n++ % MAX_NOTES];
    note->tid = gettid();
    note->n_frames = backtrace(note->frames, MAX_FRAMES);
}

extern "C" {
KEPT long reached(long n)
{
    take_note();
    sum += n;
    return n + 1;
}

KEPT long leaf(long n) { return *(volatile char *)guarded + n; }

/* Saves registers, and calls in the middle. */
KEPT long pushes(long a, long b, long c, long d)
{
    long e = reached(a) * b, f = reached(c) * d + e;
    return reached(e + f) + a * b + c * d;
}

KEPT long large(int depth)
{
    char room[9000];
    memset(room, depth, sizeof room);
    long found = depth == 0 ? reached(depth) : large(depth - 1);
    return found + room[found & 1023];
}

KEPT long growing(long n)
{
    char *room = (char *)alloca(16 * (n & 7) + 40);
    memset(room, (int)n, 40);
    return reached(n) + room[n & 31];
}

KEPT long aligned(long n, ...)
{
    __attribute__((aligned(64))) char room[128];
    char *more = (char *)alloca(16 * (n & 7) + 40);
    memset(room, (int)n, sizeof room);
    memset(more, (int)n, 40);
    return reached(n) + room[n & 63] + more[n & 31];
}

KEPT int compared(const void *a, const void *b)
{
    reached(200);
    return *(const int *)a - *(const int *)b;
}
}

static void on_signal(int signal) { reached(signal); }

static void on_fault(int signal)
{
    reached(signal);
    mprotect(guarded, 4096, PROT_READ);
}

struct Cleared {
    KEPT ~Cleared() { reached(300); }
};

KEPT void thrower(int depth)
{
    Cleared own;
    if (depth == 0)
        throw depth;
    thrower(depth - 1);
}

KEPT void catcher(void)
{
    try {
        thrower(3);
    } catch (int) {
        reached(301);
    }
}

KEPT void signals(void)
{
    raise(SIGUSR1);
    raise(SIGUSR2);
    mprotect(guarded, 4096, PROT_NONE);
    sum += leaf(3);
}

static void *threaded(void *which)
{
    for (long n = 0; n < 20; n++)
        sum += growing(n + (long)which) + pushes(n, 2, 3, 4);
    return nullptr;
}

static pthread_t all_threads[N_THREADS];

KEPT void begin_threads(void)
{
    for (long n = 0; n < N_THREADS; n++)
        pthread_create(&all_threads[n], nullptr, threaded, (void *)n);
}

KEPT void end_threads(void)
{
    for (pthread_t one : all_threads)
        pthread_join(one, nullptr);
}

KEPT void loaded(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    if (!library)
        _exit(3);
    long (*through)(long (*)(long), long) = (long (*)(long (*)(long), long))dlsym(library, "through");
    sum += through(reached, 5);
    dlclose(library);
}

KEPT void forked(void)
{
    pid_t child = fork();
    if (child == 0) {
        sum += large(1);
        _exit(0);
    }
    waitpid(child, nullptr, 0);
}

KEPT void go_ways(int argc, char **argv)
{
    int some[] = {3, 1, 2};
    sum += pushes(1, 2, 3, 4);
    sum += large(5);
    for (long n = 0; n < 3; n++)
        sum += growing(n) + aligned(n);
    qsort(some, 3, sizeof *some, compared);
    signals();
    catcher();
    begin_threads();
    end_threads();
    for (int n = 1; n < argc; n++)
        loaded(argv[n]);
    forked();
}

int main(int argc, char **argv)
{
    char line[64];
    void *warm[4];
    backtrace(warm, 4);
    shared_log = (Log *)mmap(nullptr, sizeof(Log), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    guarded = (char *)mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t other = {};
    other.ss_sp = malloc(1 << 16), other.ss_size = 1 << 16;
    sigaltstack(&other, nullptr);
    struct sigaction action = {};
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, nullptr);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, nullptr);
    action.sa_handler = on_fault;
    sigaction(SIGSEGV, &action, nullptr);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        shared_log->n = 0;
        if (line[0] == 'l') {
            begin_threads();
            for (int turn = 0; turn < 20; turn++)
                for (int n = 1; n < argc; n++)
                    loaded(argv[n]);
            end_threads();
        } else
            go_ways(argc, argv);
        for (int n = 0; n < shared_log->n; n++) {
            Note *note = &shared_log->notes[n];
            printf("%d", note->tid);
            for (int at = 2; at < note->n_frames; at++)
                printf(" %p", note->frames[at]);
            printf(";");
        }
        puts("");
        fflush(stdout);
    }
}
