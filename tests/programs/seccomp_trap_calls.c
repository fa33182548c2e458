/* what: calls of every kind that a filter answers with SIGSYS: what the handler sees, and the result that it makes up
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "filter.h"
#include "note.h"

static volatile long expected_next, expected_flags;
static volatile int handled;

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *r = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    handled++;
    note("signal", number);
    note("code", info->si_code);
    note("errno", info->si_errno);
    note("call", info->si_syscall);
    note("arch", info->si_arch == AUDIT_ARCH_X86_64);
    note("call address is rip", (long)info->si_call_addr == r[REG_RIP]);
    note("rcx is rip", r[REG_RCX] == r[REG_RIP]);
    note("r11 has flags", (r[REG_R11] & 0x202) == 0x202);
    note("instruction before", ((unsigned char *)r[REG_RIP])[-2] == 0x0f && ((unsigned char *)r[REG_RIP])[-1] == 0x05);
    note("rax", r[REG_RAX]);
    note("rdi", r[REG_RDI]);
    r[REG_RAX] = 1000 + info->si_syscall;
}

static const int calls[] = {
    SYS_getpid, SYS_mmap, SYS_mprotect, SYS_munmap, SYS_mremap, SYS_sigaltstack, SYS_arch_prctl, SYS_clone, SYS_fork,
    SYS_vfork, SYS_clone3, SYS_execve, SYS_execveat, SYS_prctl, SYS_seccomp, SYS_mlockall, SYS_shmat, SYS_shmdt,
    SYS_pkey_mprotect, SYS_exit_group, 449,
};
static const int mask_calls[] = {SYS_rt_sigaction, SYS_rt_sigprocmask};

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &action, NULL);
    int count = sizeof calls / sizeof *calls;
    note("mask calls", filter_calls(mask_calls, 2, SECCOMP_RET_TRAP | 12, SECCOMP_RET_ALLOW, 0));
    note("installed", filter_calls(calls, count, SECCOMP_RET_TRAP | 34, SECCOMP_RET_ALLOW, 0));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < count; i++)
            note("result", raw(calls[i], 5, 0, 0, 0));
        for (int i = 0; i < 2; i++)
            note("result", raw(mask_calls[i], SIGUSR1, 0, 0, 8));
        note("set gs", raw(SYS_arch_prctl, 0x1001, 0, 0, 0));
        note("upper half", raw(SYS_getpid | 7L << 32, 1, 0, 0, 0));
    }
    note("handled", handled);
    return 0;
}
