/* Threads that write numbers to a table of their own, each to its own place, while a timer's handler adds to another one;
 * a page that can't be read is read now and then. Writes what it came to. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

uint64_t table[8][1024];
volatile uint64_t ticks;
static volatile uint32_t *hidden;
static int n_rounds;

static void on_tick(int number) { (void)number; ticks += 3; }
static void on_fault(int number) { (void)number; mprotect((void *)hidden, 4096, PROT_READ | PROT_WRITE); }

__attribute__((noinline)) void fill(uint64_t *row, uint64_t base)
{
    for (int i = 0; i < 1024; i++)
        row[i] = base + i;
}

__attribute__((noinline)) uint32_t peek(void) { return *hidden; }

static void *work(void *argument)
{
    uint64_t number = (uintptr_t)argument;
    for (int i = 0; i < n_rounds; i++)
        fill(table[number], number << 32 | (uint64_t)i << 16);
    return 0;
}

int main(int argc, char **argv)
{
    n_rounds = argc > 1 ? atoi(argv[1]) : 10;
    int n_threads = argc > 2 ? atoi(argv[2]) : 2;
    struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
    struct sigaction action = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
    sigaction(SIGALRM, &action, 0);
    action.sa_handler = on_fault;
    sigaction(SIGSEGV, &action, 0);
    hidden = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hidden[0] = 77;
    setitimer(ITIMER_REAL, &often, 0);
    pthread_t threads[8];
    for (int i = 0; i < n_threads; i++)
        pthread_create(&threads[i], 0, work, (void *)(uintptr_t)i);
    uint32_t sum = 0;
    for (int i = 0; i < 20; i++) {
        mprotect((void *)hidden, 4096, PROT_NONE);
        sum += peek();
    }
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], 0);
    often = (struct itimerval){ 0 };
    setitimer(ITIMER_REAL, &often, 0);
    printf("%u %llu\n", sum, (unsigned long long)ticks);
    return 0;
}
