/* what: the program gets the addresses it gets alone: brk, mmap, stack, libraries, vDSO, thread stacks, after many mappings
 * build: -O1 -pthread
 * also: static -O1 -pthread -static
 * also: nopie -O1 -pthread -no-pie
 * traits: addresses
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

static void *work(void *argument)
{
    int local;
    printf("thread stack %p\n", (void *)&local);
    return argument;
}

int main(int argc, char **argv)
{
    (void)argc;
    int local;
    printf("main %p printf %p stack %p argv %p\n", (void *)main, (void *)printf, (void *)&local, (void *)argv);
    printf("brk %p\n", sbrk(0));
    printf("brk %p\n", sbrk(1 << 20));
    printf("malloc %p %p\n", malloc(100), malloc(1 << 22));
    for (int i = 0; i < 5; i++)
        printf("mmap %p\n", mmap(NULL, 4096ul << i, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    printf("low %p\n", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0));
    printf("huge %p\n", mmap(NULL, 1ul << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    printf("vdso %lx\n", getauxval(AT_SYSINFO_EHDR));
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    printf("brk %p\n", sbrk(100 << 20));
    return 0;
}
