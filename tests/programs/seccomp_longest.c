/* what: the longest filter that the kernel takes, which leaves the runtime no room to put anything in front of it
 * build: -O1
 * lost: released_threads
 */
#define _GNU_SOURCE
#include "filter.h"
#include "note.h"

static struct sock_filter code[4096];

int main(void)
{
    for (int i = 0; i < 4096; i++)
        code[i] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    code[4093] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1);
    code[4094] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 66);
    code[4095] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {4096, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    note("installed", raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program, 0));
    note("getppid", raw(SYS_getppid, 0, 0, 0, 0));
    return 0;
}
