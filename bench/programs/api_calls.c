/* Calls whose capture is measured: "getppid", "open" (and close) or "malloc" (and free), so many times.
 *
 * Prints nanoseconds of processor time a turn.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double spent(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int count, char **words)
{
    const char *what = count > 1 ? words[1] : "getppid";
    long turns = count > 2 ? atol(words[2]) : 100000;
    int is_open = !strcmp(what, "open"), is_malloc = !strcmp(what, "malloc");
    void *volatile kept;
    double before = spent();
    for (long i = 0; i < turns; i++) {
        if (is_open)
            close(open("/dev/null", O_RDONLY));
        else if (is_malloc)
            kept = malloc(64), free(kept);
        else
            syscall(SYS_getppid);
    }
    printf("%.1f\n", (spent() - before) / (double)turns);
    return 0;
}
