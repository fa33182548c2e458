/* Calls whose arguments, results and memory somebody changes: what it prints says what happened. It calls scale(n, 3) so often as the first
   argument says, from as many threads as the second one does; with a third one it aborts at the end. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

volatile uint64_t words[2] = {0x1111111111111111, 0x2222222222222222};
const volatile uint64_t *volatile fixed; /* in a page that can't be written to */
volatile sig_atomic_t n_signals;
static _Thread_local volatile long n_executed;
static long count = 4;

__attribute__((noinline)) long scale(long n, long by)
{
    n_executed++;
    return n * by;
}

static void on_signal(int number)
{
    (void)number;
    n_signals++;
}

static void *work(void *is_shown)
{
    for (long n = 0; n < count; n++) {
        long result = scale(n, 3);
        if (is_shown)
            printf("%ld ", result);
    }
    return NULL;
}

int main(int n_words, char **arguments)
{
    pthread_t threads[8];
    uint64_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *page = 5;
    mprotect(page, 4096, PROT_READ);
    fixed = page;
    long n_threads = n_words > 2 ? atol(arguments[2]) : 0;
    signal(SIGUSR2, on_signal);
    if (n_words > 1)
        count = atol(arguments[1]);
    for (long i = 0; i < n_threads && i < 8; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (long i = 0; i < n_threads && i < 8; i++)
        pthread_join(threads[i], NULL);
    if (n_threads == 0)
        work(arguments);
    printf("executed %ld words %#lx %#lx fixed %lu signals %d\n", n_executed, words[0], words[1], *fixed, n_signals);
    fflush(stdout);
    if (n_words > 3)
        abort();
    return 0;
}
