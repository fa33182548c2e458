/* what: clone3 with sizes that are odd, too large, or larger than known, with zeros or something else behind what is known
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void try(size_t size, char last)
{
    static char large[8192];
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    memset(large, 0, sizeof large);
    memcpy(large, &arguments, sizeof arguments);
    if (last)
        large[size - 1] = last;
    fflush(stdout);
    long result = syscall(SYS_clone3, large, size);
    if (result == 0)
        _exit(7);
    int status = 0;
    if (result > 0)
        waitpid((pid_t)result, &status, 0);
    printf("%zu: %s, exited %d\n", size, result < 0 ? strerrorname_np(errno) : "started", WEXITSTATUS(status));
}

int main(void)
{
    static const size_t sizes[] = {0, 8, 63, 64, 65, 68, 72, 80, 87, 88, 89, 96, 200, 4095, 4096, 4097, 8192};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        try(sizes[i], 0);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (sizes[i] > sizeof(struct clone_args))
            try(sizes[i], 1);
    return 0;
}
