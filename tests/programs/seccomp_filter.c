/* what: a seccomp filter that allows the usual and fails others with an error number; SIGSYS with the call's number and address
 * build: -O1 -fno-stack-protector -fno-unroll-loops
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include "note.h"

extern char after_call[];

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("call", info->si_syscall);
    note("address right", info->si_call_addr == (void *)after_call && (char *)registers[REG_RIP] == after_call);
    registers[REG_RAX] = 4242;
}

int main(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 77),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getuid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &action, NULL);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    note("installed", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    for (int i = 0; i < 3; i++) {
        long got;
        note("getppid", getppid());
        note("errno", errno);
        __asm__ volatile("syscall\n after_call:" : "=a"(got) : "a"(SYS_getuid) : "rcx", "r11", "memory");
        note("getuid", got);
    }
    /* From filters no way leads to strict mode: what asks for it goes on as it was. */
    note("strict", prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
    note("errno", errno);
    note("strict", syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL));
    note("errno", errno);
    note("mode", prctl(PR_GET_SECCOMP));
    return 0;
}
