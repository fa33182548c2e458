/* what: pages toggled between writable and executable by mprotect, rewritten each time, some from another thread, and part of a page run
 * build: -O1 -pthread -fno-stack-protector
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static unsigned char *pages;
static unsigned long sum;

static void emit(unsigned char *at, unsigned value)
{
    at[0] = 0xb8;
    memcpy(at + 1, &value, 4);
    at[5] = 0xc3;
}

static unsigned run(unsigned char *at) { return ((unsigned (*)(void))at)(); }

static void round_of(unsigned i)
{
    unsigned char *page = pages + 4096 * (i % 3);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    emit(page, i);
    emit(page + 4080, i + 1);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    sum = sum * 31 + run(page) + run(page + 4080);
    if (i % 10 == 0) {
        mprotect(pages, 3 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
        emit(pages + 2048, i);
        sum = sum * 31 + run(pages + 2048);
        emit(pages + 2048, i + 5);
        sum = sum * 31 + run(pages + 2048);
        mprotect(pages, 3 * 4096, PROT_READ | PROT_EXEC);
        sum += run(pages + 2048);
    }
}

static void *thread(void *from)
{
    for (unsigned i = 0; i < 20; i++)
        round_of((unsigned)(uintptr_t)from + i);
    return NULL;
}

int main(void)
{
    pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (unsigned i = 0; i < 100; i++)
        round_of(i);
    for (uintptr_t i = 0; i < 4; i++) {
        pthread_t other;
        pthread_create(&other, NULL, thread, (void *)(1000 * (i + 1)));
        pthread_join(other, NULL);
        round_of((unsigned)i);
    }
    printf("sum %lx\n", sum);
    return 0;
}
