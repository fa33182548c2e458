/* what: threads one after the other call code at one address, by one pointer and by several, each other code than the last; some can't start
 * build: -O2 -pthread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>

typedef int (*made)(void);
static unsigned char *page;
static _Alignas(16) unsigned char stack[4096];

/* mov eax, value; ret */
static void write_code(unsigned char *place, int value)
{
    place[0] = 0xb8;
    memcpy(place + 1, &value, 4);
    place[5] = 0xc3;
}

static void *call(void *argument)
{
    int sum = 0;
    for (int i = 0; i < 6; i++)
        sum += ((made)(page + (i & 1) * 64))() + ((made)argument)();
    return (void *)(long)sum;
}

static int never(void *argument)
{
    return argument != NULL;
}

int main(void)
{
    long total = 0;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < 40; round++) {
        mprotect(page, 4096, PROT_READ | PROT_WRITE);
        for (int i = 0; i < 3; i++)
            write_code(page + i * 64, round * 10 + i);
        mprotect(page, 4096, PROT_READ | PROT_EXEC);
        /* The kernel refuses a thread that has no memory in common. */
        if (clone(never, stack + sizeof stack, CLONE_THREAD | CLONE_SIGHAND, NULL) != -1)
            return 1;
        if (clone(never, stack + sizeof stack, CLONE_VM | CLONE_THREAD, NULL) != -1)
            return 2;
        pthread_t thread;
        if (pthread_create(&thread, NULL, call, page + 128) != 0)
            return 3;
        void *sum;
        pthread_join(thread, &sum);
        if ((long)sum != 12 * round * 10 + 15)
            printf("round %d: %ld\n", round, (long)sum);
        total += (long)sum;
    }
    printf("%ld\n", total);
    return 0;
}
