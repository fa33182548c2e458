/* what: clone3 with sizes that are odd or larger than known, with zeros behind what is known
 * build: -O1 -fno-stack-protector
 * differs: the runtime copies the arguments, and refuses sizes that the kernel would take
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

static void try(size_t size)
{
    static char large[8192];
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    memcpy(large, &arguments, sizeof arguments);
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
    static const size_t sizes[] = {64, 68, 72, 80, 88, 96, 200, 4096};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        try(sizes[i]);
    return 0;
}
