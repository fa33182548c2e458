/* Has its recorder stopped while it does more than the recorder's rings hold: recorded with `--on-full drop`, what it
 * did meanwhile is lost. Before and behind that it does so little that all of it is kept. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Each system call is a record of its own, so that the path is long to tell. */
__attribute__((noinline)) static long ask(long times)
{
    long sum = 0;
    while (times-- > 0)
        sum += syscall(SYS_getppid) > 1;
    return sum;
}

__attribute__((noinline)) static long ask_slowly(int times)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    long sum = 0;
    while (times-- > 0) {
        sum += ask(50);
        nanosleep(&pause, NULL);
    }
    return sum;
}

int main(void)
{
    long sum = ask_slowly(5);
    kill(getppid(), SIGSTOP);
    sum += ask(400000);
    kill(getppid(), SIGCONT);
    sum += ask_slowly(40);
    printf("%ld\n", sum);
    return 0;
}
