/* Threads that each have their own errno and variables, also of a library that is loaded late.
 *
 * Arguments: the library of thread_locals_library.c, how many threads. Prints what each thread has, in no order.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

__thread int own = 7;
static __thread struct {
    long number;
    char name[8];
} record = {3, "own"};

static long (*in_library)(long);
static pthread_barrier_t all_are_there;

__attribute__((noinline, noipa)) void here(long thread)
{
    printf("here %ld %d %d %ld\n", thread, errno, own, record.number);
}

static void *run(void *argument)
{
    long thread = (long)argument;
    own += (int)thread;
    record.number *= thread;
    pthread_barrier_wait(&all_are_there);
    errno = 100 + (int)thread;
    here(thread);
    if (thread % 2)
        in_library(thread);
    return NULL;
}

int main(int argc, char **argv)
{
    int n_threads = argc > 2 ? atoi(argv[2]) : 4;
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    pthread_t threads[64];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!library || n_threads > 64) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    in_library = (long (*)(long))dlsym(library, "in_library");
    pthread_barrier_init(&all_are_there, NULL, (unsigned)n_threads);
    for (long i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)(i + 1)))
            return 1;
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
