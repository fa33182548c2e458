/* what: code that one thread rewrites while another runs it: handed over by flags, and patched in one store as it runs
 * build: -O1 -pthread -fno-stack-protector
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static unsigned char *code;
static atomic_int turn, stop;
static atomic_uint seen;

static void write_function(unsigned value)
{
    code[0] = 0xb8; /* mov $value, %eax; ret */
    memcpy(code + 1, &value, 4);
    code[5] = 0xc3;
}

static void *runner(void *nothing)
{
    unsigned long sum = 0;
    for (int i = 0; i < 200; i++) {
        while (atomic_load(&turn) != 1)
            sched_yield();
        __asm__ volatile("xor %%eax, %%eax\n cpuid" ::: "eax", "ebx", "ecx", "edx", "memory");
        sum = sum * 31 + ((unsigned (*)(void))code)();
        atomic_store(&turn, 0);
    }
    printf("sum %lx\n", sum);
    return nothing;
}

/* Runs what is patched all the time: the place is aligned, so each run has the old or the new value. */
static void *spinner(void *nothing)
{
    unsigned last = 0;
    int backwards = 0;
    while (!atomic_load(&stop)) {
        unsigned value = ((unsigned (*)(void))(code + 64))();
        backwards += value < last;
        last = value;
        atomic_store(&seen, value);
    }
    printf("backwards %d, last %u\n", backwards, ((unsigned (*)(void))(code + 64))());
    return nothing;
}

int main(void)
{
    pthread_t thread;
    code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_create(&thread, NULL, runner, NULL);
    for (unsigned i = 0; i < 200; i++) {
        write_function(i * i);
        atomic_store(&turn, 1);
        while (atomic_load(&turn) != 0)
            sched_yield();
    }
    pthread_join(thread, NULL);
    /* nops, then mov $0, %eax with its value at a multiple of four, ret */
    memset(code + 64, 0x90, 3);
    memcpy(code + 67, "\xb8\x00\x00\x00\x00\xc3", 6);
    pthread_create(&thread, NULL, spinner, NULL);
    for (unsigned i = 1; i <= 300; i++) {
        atomic_store((atomic_uint *)(code + 68), i);
        while (atomic_load(&seen) != i)
            sched_yield();
    }
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
    return 0;
}
