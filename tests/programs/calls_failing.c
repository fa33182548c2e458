/* what: system calls with addresses that nobody can read, each behind another call: one that waits, opens, maps, comes back from a handler
 * build: -O1
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TURNS 500

static volatile sig_atomic_t n_signals;

static void on_signal(int signal) {
    (void)signal;
    n_signals++;
}

static inline long made(long number, long a, long b, long c) {
    long result;
    register long d __asm__("r10") = 0;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d) : "rcx", "r11", "memory");
    return result;
}

// Each call in a block of its own, so that there are as many ways on as calls.
#define EACH(what, before)                                                 \
    do {                                                                   \
        long n_made = 0, n_failed = 0, n_other = 0;                        \
        for (int turn = 0; turn < TURNS; turn++) {                         \
            before;                                                        \
            n_made++;                                                      \
            if (made(SYS_write, ends[1], 8, 1) == -14)                     \
                n_failed++;                                                \
            else                                                           \
                n_other++;                                                 \
        }                                                                  \
        printf("%s %ld %ld %ld\n", what, n_made, n_failed, n_other);       \
    } while (0)

int main(void) {
    int ends[2];
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char there;
    if (pipe(ends) || page == MAP_FAILED)
        return 1;
    signal(SIGUSR1, on_signal);
    EACH("wait4", made(SYS_wait4, -1, 0, 1));
    EACH("open", made(SYS_close, made(SYS_openat, AT_FDCWD, (long)"/dev/null", O_RDONLY), 0, 0));
    EACH("mlock", made(SYS_mlock, (long)page, 4096, 0));
    EACH("mincore", made(SYS_mincore, (long)page, 4096, (long)&there));
    EACH("mprotect", made(SYS_mprotect, (long)page, 4096, PROT_READ));
    EACH("getppid", made(SYS_getppid, 0, 0, 0));
    EACH("getuid", made(SYS_getuid, 0, 0, 0));
    EACH("handler", made(SYS_kill, made(SYS_getpid, 0, 0, 0), SIGUSR1, 0));
    printf("signals %d\n", (int)n_signals);
    // By the C library, whose functions have frames that must be the right ones.
    long n_open = 0, n_refused = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        int file = open("/dev/null", O_RDONLY);
        n_open += file >= 0;
        n_refused += access((const char *)page + (1L << 46), F_OK) < 0;
        close(file);
    }
    printf("library %ld %ld\n", n_open, n_refused);
    return 0;
}
