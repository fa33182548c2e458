/* what: a filter that answers 32-bit calls (int 0x80) with SIGSYS, in the middle of a block and at its end
 * build: -O1 -fno-stack-protector
 * lost: released_threads
 */
#define _GNU_SOURCE
#include <signal.h>
#include <ucontext.h>
#include "filter.h"
#include "note.h"

extern char after_middle[], after_end[];

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *r = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("call", info->si_syscall);
    note("arch", info->si_arch == AUDIT_ARCH_I386);
    note("rax", r[REG_RAX]);
    note("address", (char *)info->si_call_addr == (info->si_syscall == 20 ? after_middle : after_end));
    note("rip", (char *)r[REG_RIP] == info->si_call_addr);
    r[REG_RAX] = 77;
}

int main(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_I386, 0, 1),
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
    note("installed", raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program, 0));
    for (int i = 0; i < 3; i++) {
        long middle = 20, end = 24;
        __asm__ volatile("int $0x80\n.globl after_middle\nafter_middle: add $1, %0" : "+a"(middle) : : "memory", "r8",
                         "r9", "r10", "r11");
        note("middle", middle);
        __asm__ volatile("int $0x80\n.globl after_end\nafter_end: jmp 1f\n1:" : "+a"(end) : : "memory", "r8", "r9",
                         "r10", "r11");
        note("end", end);
    }
    return 0;
}
