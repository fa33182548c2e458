/* Threads, children, programs, signals, mappings and libraries, all the time, for as many seconds as the first argument says.
 *
 * Arguments: seconds, a shared library with `int library_work(int, int (*)(int))`. Prints how many there were of each: threads
 * made, children, programs executed, signals handled, pieces of code made, libraries loaded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "turns.h"

enum { THREADS, CHILDREN, PROGRAMS, SIGNALS, CODES, LIBRARIES, KINDS };

static atomic_long numbers[KINDS];
static struct timespec end;
static const char *library_path;
static char *own_path;

static int is_over(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec);
}

static void fail(const char *what)
{
    perror(what);
    _exit(1);
}

static void pause_ms(long ms) { clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){0, ms * 1000000}, NULL); }

__attribute__((noinline)) static void handle(int number)
{
    (void)number;
    atomic_fetch_add(&numbers[SIGNALS], 1);
}

static void *work(void *argument)
{
    run_turns((long)argument);
    return NULL;
}

static void *make_threads(void *unused)
{
    for (long turns = 1; !is_over(); turns++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            if (pthread_create(&threads[i], NULL, work, (void *)turns) != 0)
                fail("pthread_create");
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        atomic_fetch_add(&numbers[THREADS], 4);
        pause_ms(5);
    }
    return unused;
}

static void *make_children(void *unused)
{
    for (long n = 0; !is_over(); n++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            run_turns(100);
            if (n % 8 == 0)
                execl(own_path, own_path, NULL);
            _exit(n % 8 == 0 ? 99 : 7);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 7 << 8)
            fail("fork");
        atomic_fetch_add(&numbers[CHILDREN], 1);
        if (n % 8 == 0)
            atomic_fetch_add(&numbers[PROGRAMS], 1);
        pause_ms(10);
    }
    return unused;
}

static void *make_code(void *unused)
{
    /* mov eax, NUMBER; ret */
    unsigned char code[] = {0xb8, 0, 0, 0, 0, 0xc3};
    for (int n = 0; !is_over(); n++) {
        memcpy(code + 1, &n, sizeof n);
        void *room = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED)
            fail("mmap");
        memcpy(room, code, sizeof code);
        mprotect(room, 65536, PROT_READ | PROT_EXEC);
        if (((int (*)(void))room)() != n)
            fail("code");
        munmap(room, 65536);
        atomic_fetch_add(&numbers[CODES], 1);
        pause_ms(5);
    }
    return unused;
}

static int add_one(int x) { return x + 1; }

static void *load_libraries(void *unused)
{
    while (!is_over()) {
        void *library = dlopen(library_path, RTLD_NOW);
        if (library == NULL)
            fail(dlerror());
        ((int (*)(int, int (*)(int)))dlsym(library, "library_work"))(3, add_one);
        dlclose(library);
        atomic_fetch_add(&numbers[LIBRARIES], 1);
        pause_ms(20);
    }
    return unused;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 7;
    own_path = argv[0];
    library_path = argv[2];
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += atol(argv[1]);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    void *(*const workers[])(void *) = {make_threads, make_children, make_code, load_libraries};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, workers[i], NULL);
    struct itimerval interval = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &interval, NULL);
    while (!is_over())
        run_turns(100000);
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < KINDS; i++)
        printf("%ld\n", atomic_load(&numbers[i]));
    return 0;
}
