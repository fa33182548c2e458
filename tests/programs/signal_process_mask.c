/* what: rt_sigprocmask in all ways: block, unblock, set, read; unblockable ones, bad ways, sizes and pointers; per thread; sigpending
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int handled;

static void handler(int number) { handled += number; }

static void try(const char *what, long how, const void *new, void *old, long size)
{
    errno = 0;
    long result = syscall(SYS_rt_sigprocmask, how, new, old, size);
    uint64_t mask = 0;
    int error = errno;
    syscall(SYS_rt_sigprocmask, 0, NULL, &mask, 8);
    printf("%s: %ld %s, mask %lx, handled %d\n", what, result, result < 0 ? strerrorname_np(error) : "", (unsigned long)mask, handled);
}

static void *thread(void *nothing)
{
    uint64_t old = 0, bit = 1ull << (SIGHUP - 1);
    try("thread inherits", SIG_BLOCK, NULL, &old, 8);
    try("thread blocks", SIG_BLOCK, &bit, &old, 8);
    return nothing;
}

int main(void)
{
    uint64_t old, pending, bits = 1ull << (SIGUSR1 - 1) | 1ull << (SIGUSR2 - 1), all = ~0ull, none = 0;
    signal(SIGUSR1, handler);
    signal(SIGUSR2, handler);
    try("block", SIG_BLOCK, &bits, &old, 8);
    raise(SIGUSR1);
    raise(SIGUSR2);
    syscall(SYS_rt_sigpending, &pending, 8);
    printf("pending %lx\n", (unsigned long)pending);
    bits = 1ull << (SIGUSR1 - 1);
    try("unblock one", SIG_UNBLOCK, &bits, &old, 8);
    printf("old %lx\n", (unsigned long)old);
    try("set none", SIG_SETMASK, &none, &old, 8);
    try("set all", SIG_SETMASK, &all, &old, 8);
    try("old in the place of the new", SIG_SETMASK, &none, &none, 8);
    printf("its value %lx\n", (unsigned long)none);
    none = 0;
    try("nothing at all", 99, NULL, NULL, 8);
    try("read with a bad way", 99, NULL, &old, 8);
    try("bad way", 3, &all, NULL, 8);
    try("bad way", -1, &all, NULL, 8);
    try("way beyond 32 bits", 1l << 32 | SIG_BLOCK, &bits, NULL, 8);
    try("size 4", SIG_SETMASK, &none, NULL, 4);
    try("size 0", SIG_SETMASK, &none, NULL, 0);
    try("bad new", SIG_SETMASK, (void *)8, NULL, 8);
    try("bad old", SIG_SETMASK, &none, (void *)8, 8);
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    try("over the end", SIG_SETMASK, page + 4092, NULL, 8);
    raise(SIGUSR1);
    try("after a raise", SIG_BLOCK, &bits, NULL, 8);
    raise(SIGUSR1);
    try("unblocked with a bad place for the old", SIG_UNBLOCK, &bits, (void *)8, 8);
    bits = 1ull << (SIGUSR2 - 1);
    try("block", SIG_BLOCK, &bits, NULL, 8);
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    try("after the thread", SIG_BLOCK, NULL, &old, 8);
    raise(SIGUSR2);
    signal(SIGUSR2, SIG_IGN);                 /* drops what waits */
    syscall(SYS_rt_sigpending, &pending, 8);
    printf("pending %lx\n", (unsigned long)pending);
    signal(SIGUSR2, handler);
    try("unblock", SIG_UNBLOCK, &bits, NULL, 8);
    printf("sigpending: %ld", syscall(SYS_rt_sigpending, &pending, 16));
    printf(" %s\n", strerrorname_np(errno));
    return 0;
}
