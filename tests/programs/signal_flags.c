/* what: rt_sigaction: every flag bit is kept or dropped as the kernel does, and every bad argument has its error
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

static void handler(int number) { (void)number; }

static void restorer(void) {}

static void try(const char *what, long number, const void *new, void *old, long size)
{
    errno = 0;
    long result = syscall(SYS_rt_sigaction, number, new, old, size);
    printf("%s: %ld %s\n", what, result, result < 0 ? strerrorname_np(errno) : "");
}

int main(void)
{
    struct kernel_action action = {handler, 0, restorer, 0}, old;
    for (int bit = 0; bit < 64; bit++) {
        action.flags = 1ul << bit;
        memset(&old, 0xee, sizeof old);
        long set = syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8);
        long got = syscall(SYS_rt_sigaction, SIGUSR1, NULL, &old, 8);
        printf("bit %d: %ld %ld flags %lx handler %d restorer %d\n", bit, set, got, old.flags, old.handler == handler,
               old.restorer == restorer);
    }
    action = (struct kernel_action){handler, SA_SIGINFO | 0x04000000, restorer, ~0ull};
    try("whole mask", SIGUSR2, &action, NULL, 8);
    try("read", SIGUSR2, NULL, &old, 8);
    printf("mask %lx\n", (unsigned long)old.mask);
    action = (struct kernel_action){SIG_IGN, SA_NODEFER, NULL, 5};
    try("set and read", SIGUSR2, &action, &old, 8);
    printf("before: %d mask %lx\n", old.handler == handler, (unsigned long)old.mask);
    try("read", SIGUSR2, NULL, &old, 8);
    printf("ignored %d flags %lx mask %lx restorer %d\n", old.handler == SIG_IGN, old.flags, (unsigned long)old.mask, old.restorer == NULL);
    try("nothing", SIGUSR2, NULL, NULL, 8);
    try("the same place", SIGUSR2, &action, &action, 8);
    static const long numbers[] = {0, -1, 65, 64, 1000, 1l << 32, (1l << 32) + SIGUSR1, SIGKILL, SIGSTOP};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        printf("signal %lx ", numbers[i]);
        try("set", numbers[i], &action, NULL, 8);
        try("read", numbers[i], NULL, &old, 8);
    }
    char *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    try("size 4", SIGUSR1, &action, NULL, 4);
    try("size 16", SIGUSR1, &action, NULL, 16);
    try("bad pointer", SIGUSR1, (void *)8, NULL, 8);
    try("kernel's pointer", SIGUSR1, (void *)-4096l, NULL, 8);
    try("over the end", SIGUSR1, page + 4096 - 8, NULL, 8);
    action = (struct kernel_action){SIG_IGN, 0, NULL, 0};
    try("read to what is not writable, and set", SIGUSR1, &action, page, 8);
    try("read", SIGUSR1, NULL, &old, 8);
    printf("set all the same %d\n", old.handler == SIG_IGN);
    return 0;
}
