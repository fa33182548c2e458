/* what: a filter that looks at where calls come from: SIGSYS for those from outside the program's own code
 * build: -O1 -static -no-pie
 * lost: released_threads
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "filter.h"
#include "note.h"

extern char __executable_start[], etext[];

static void handler(int number, siginfo_t *info, void *opaque)
{
    note("signal", number);
    note("call", info->si_syscall);
    ((ucontext_t *)opaque)->uc_mcontext.gregs[REG_RAX] = 11;
}

int main(void)
{
    unsigned start = (unsigned)(unsigned long)__executable_start, end = (unsigned)(unsigned long)etext;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, start, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, end, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &action, NULL);
    unsigned char *elsewhere = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(elsewhere, "\xb8\x6e\0\0\0\x0f\x05\xc3", 8);
    long (*call)(void) = (long (*)(void))elsewhere;
    note("before", call() > 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    note("installed", raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program, 0));
    note("from here", raw(SYS_getppid, 0, 0, 0, 0) > 0);
    note("from elsewhere", call());
    return 0;
}
