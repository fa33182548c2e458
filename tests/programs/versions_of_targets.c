/* what: two sites with many targets call hot code that is rewritten, under a timer and in two threads
 * build: -O1 -pthread -fno-stack-protector
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include "note.h"

enum { TARGETS = 5, SPACE = 64 };

static unsigned char *page;
static volatile long ticks;

static void on_tick(int number)
{
    (void)number;
    ticks++;
}

/* mov eax, value; xor ecx, ecx; ret */
static void emit(int index, unsigned value)
{
    unsigned char code[] = {0xb8, 0, 0, 0, 0, 0x31, 0xc9, 0xc3};
    memcpy(code + 1, &value, 4);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    memcpy(page + SPACE * index, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

__attribute__((noinline)) static unsigned first_site(unsigned (*function)(void))
{
    unsigned value = function();
    __asm__ volatile("nop" : "+r"(value));
    return value + 1;
}

__attribute__((noinline)) static unsigned second_site(unsigned (*function)(void))
{
    unsigned value = function();
    __asm__ volatile("nop; nop" : "+r"(value));
    return value * 2;
}

static unsigned (*target(int index))(void) { return (unsigned (*)(void))(page + SPACE * index); }

static void *run(void *sum)
{
    unsigned total = 0;
    for (int i = 0; i < 2000; i++)
        total += first_site(target(i % TARGETS)) + second_site(target((i + 2) % TARGETS));
    *(unsigned *)sum = total;
    return NULL;
}

int main(void)
{
    unsigned sums[2], total = 0;
    struct itimerval every = {{0, 500}, {0, 500}};
    signal(SIGALRM, on_tick);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int index = 0; index < TARGETS; index++)
        emit(index, 10 * (index + 1));
    setitimer(ITIMER_REAL, &every, NULL);
    for (int version = 0; version < 6; version++) {
        pthread_t other;
        pthread_create(&other, NULL, run, &sums[1]);
        run(&sums[0]);
        pthread_join(other, NULL);
        total += sums[0] + 3 * sums[1];
        emit(version % TARGETS, 1000 * (version + 1));
    }
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    note("total", total);
    return 0;
}
