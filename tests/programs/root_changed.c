/* what: another root by chroot, another user by setuid, no processes more; threads, children, signals and new code go on
 * build: -O1 -pthread -static
 * needs: root
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "note.h"

static void handler(int number) { note("handler", number); }

static void *thread(void *nothing)
{
    unsigned x = 1;
    for (unsigned i = 0; i < 10000; i++)
        x = x * 31 + i;
    note("thread", x);
    note("user", (long)syscall(SYS_getuid));
    return nothing;
}

static void go_on(const char *what)
{
    int status;
    pthread_t other;
    note(what, 0);
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    raise(SIGUSR1);
    pid_t child = fork();
    if (child == 0)
        _exit(open("/etc/passwd", O_RDONLY) < 0 ? errno : 0);
    waitpid(child, &status, 0);
    note("child found a file, or error", WEXITSTATUS(status));
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, "\xb8\x07\x00\x00\x00\xc3", 6);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    note("code", ((int (*)(void))code)());
    munmap(code, 4096);
}

int main(void)
{
    char folder[] = "/tmp/root_changed.XXXXXX";
    signal(SIGUSR1, handler);
    if (mkdtemp(folder) == NULL)
        return 1;
    chmod(folder, 0755);
    go_on("at first");
    int outside = open("/tmp", O_RDONLY | O_DIRECTORY);
    note("chroot", chroot(folder) == 0 && chdir("/") == 0);
    go_on("another root");
    if (unlinkat(outside, strrchr(folder, '/') + 1, AT_REMOVEDIR) != 0)
        note("not removed", errno);
    close(outside);
    note("setgroups", setgroups(0, NULL));
    note("setgid", setgid(65534));
    note("setuid", setuid(65534));
    note("no way back", setuid(0) != 0 && errno == EPERM);
    note("dumpable", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
    go_on("another user");
    note("dumpable again", prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
    go_on("dumpable");
    /* No process more for this user. */
    setrlimit(RLIMIT_NPROC, &(struct rlimit){0, 0});
    pthread_t other;
    note("thread refused", pthread_create(&other, NULL, thread, NULL) == EAGAIN);
    note("fork refused", fork() == -1 && errno == EAGAIN);
    raise(SIGUSR1);
    return 0;
}
