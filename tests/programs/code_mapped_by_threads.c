/* what: code mapped twice from a memfd, written through one mapping and run through the other by two threads, moved and unmapped
 * build: -O1 -pthread -fno-stack-protector
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned char *writable, *executable;

static void emit(unsigned at, unsigned value)
{
    writable[at] = 0xb8;
    memcpy(writable + at + 1, &value, 4);
    writable[at + 5] = 0xc3;
}

static unsigned run(unsigned at) { return ((unsigned (*)(void))(executable + at))(); }

static void *thread(void *nothing)
{
    for (unsigned i = 0; i < 50; i++)
        emit(512, 5000 + i);
    return nothing;
}

int main(void)
{
    int file = memfd_create("code", 0);
    if (ftruncate(file, 8192) != 0)
        return 1;
    writable = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    executable = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    unsigned long sum = 0;
    for (unsigned i = 0; i < 200; i++) {
        emit(i % 4 * 100, i);
        sum = sum * 31 + run(i % 4 * 100);
    }
    printf("sum %lx\n", sum);
    for (int i = 0; i < 3; i++) {
        pthread_t other;
        emit(512, 1);
        printf("before %u", run(512));
        pthread_create(&other, NULL, thread, NULL);
        pthread_join(other, NULL);
        printf(", after %u\n", run(512));
    }
    /* Written by a system call, and by another mapping made later. */
    emit(0, 77);
    printf("%u", run(0));
    if (pwrite(file, "\x4e", 1, 1) != 1)
        return 1;
    printf(" %u", run(0));
    unsigned char *third = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    third[1] = 99;
    printf(" %u\n", run(0));
    /* The two halves change their places. */
    emit(4096, 4096);
    unsigned before = run(4096);
    mmap(executable, 4096, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, file, 4096);
    printf("moved over: %u %u\n", before, run(0));
    emit(4096, 4097);
    printf("both: %u %u\n", run(0), run(4096));
    return 0;
}
