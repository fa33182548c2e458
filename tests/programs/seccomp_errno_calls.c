/* what: calls of every kind that a filter refuses with an error number, whatever else would be wrong with them
 * build: -O1
 * status: SIGKILL
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "filter.h"
#include "note.h"

static const int calls[] = {
    SYS_mmap, SYS_mprotect, SYS_munmap, SYS_mremap, SYS_sigaltstack, SYS_arch_prctl, SYS_clone, SYS_fork, SYS_vfork,
    SYS_clone3, SYS_execve, SYS_execveat, SYS_mlockall, SYS_shmat, SYS_shmdt, SYS_pkey_mprotect, SYS_exit_group, SYS_exit,
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_open, SYS_openat, SYS_getpid, SYS_time, 600,
};

static void handler(int number) { (void)number; }

int main(void)
{
    int count = sizeof calls / sizeof *calls;
    signal(SIGUSR1, handler);
    note("installed", filter_calls(calls, count, SECCOMP_RET_ERRNO | 123, SECCOMP_RET_ALLOW, 0));
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < count; i++)
            if (calls[i] != SYS_exit)
                note("result", raw(calls[i], 0, 0, 0, 8));
    note("set gs", raw(SYS_arch_prctl, 0x1001, 0x1000, 0, 0));
    raise(SIGUSR1);
    long (*vsyscall_time)(long *) = (long (*)(long *))0xffffffffff600400;
    note("vsyscall", vsyscall_time(NULL) < 0);
    note("big error", filter_one(SYS_getuid, SECCOMP_RET_ERRNO | 0xffff));
    note("result", raw(SYS_getuid, 0, 0, 0, 0));
    note("no tracer", filter_one(SYS_getgid, SECCOMP_RET_TRACE | 1));
    note("result", raw(SYS_getgid, 0, 0, 0, 0));
    note("log", filter_one(SYS_geteuid, SECCOMP_RET_LOG));
    note("result", raw(SYS_geteuid, 0, 0, 0, 0) >= 0);
    /* What refused the end is over for one call that no filter knows. */
    note("exit", raw(SYS_exit, 0, 0, 0, 0));
    kill(raw(SYS_getpgid, 0, 0, 0, 0) ? (int)raw(SYS_gettid, 0, 0, 0, 0) : 0, SIGKILL);
    return 1;
}
