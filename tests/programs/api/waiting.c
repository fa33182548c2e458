/* Waits in a system call until a byte comes, or for a second: waiting HOW. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int word;

static void *wakes(void *nothing)
{
    char byte;
    if (read(0, &byte, 1) != 1)
        return 0;
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &word, FUTEX_WAKE, 1, 0, 0, 0);
    return nothing;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "read";
    char byte;
    if (!strcmp(how, "poll")) {
        struct pollfd polled = {.fd = 0, .events = POLLIN};
        return poll(&polled, 1, -1) != 1;
    }
    if (!strcmp(how, "nanosleep")) {
        struct timespec long_enough = {.tv_sec = 4};
        return nanosleep(&long_enough, 0) != 0;
    }
    if (!strcmp(how, "futex")) {
        pthread_t thread;
        pthread_create(&thread, 0, wakes, 0);
        while (!__atomic_load_n(&word, __ATOMIC_SEQ_CST))
            syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0, 0, 0);
        return 0;
    }
    return read(0, &byte, 1) != 1;
}
