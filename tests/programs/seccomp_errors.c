/* what: filters that the kernel refuses, with the error that each gets; the longest that it takes
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include "filter.h"
#include "note.h"

static struct sock_filter code[4097];

static void try(const char *what, unsigned length, struct sock_filter *place)
{
    struct sock_fprog program = {(unsigned short)length, place};
    note(what, raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program, 0));
    note(what, raw(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&program, 0));
}

int main(void)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    for (int i = 0; i < 4097; i++)
        code[i] = allow;
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
        note("no other user", 0);
    try("without no_new_privs", 1, code);
    try("and unreadable", 1, (struct sock_filter *)8);
    try("and empty", 0, code);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    try("empty", 0, code);
    try("too long", 4097, code);
    try("unreadable", 1, (struct sock_filter *)8);
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + 4096, 4096);
    memcpy(pages + 4096 - sizeof allow, &allow, sizeof allow);
    try("half readable", 2, (struct sock_filter *)(pages + 4096 - sizeof allow));
    note("no program", raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 0, 0));
    note("bad program", raw(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)(pages + 4090), 0));
    note("operation", raw(SYS_seccomp, 99, 0, 0, 0));
    unsigned action = SECCOMP_RET_TRAP;
    note("available", raw(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, (long)&action, 0));
    note("mode", raw(SYS_prctl, PR_SET_SECCOMP, 7, 0, 0));
    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2);
    try("odd offset", 2, code);
    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof(struct seccomp_data));
    try("beyond", 2, code);
    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_MEM, 3);
    try("no such memory", 2, code);
    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0);
    try("a byte", 2, code);
    code[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 5, 0, 0);
    try("far jump", 2, code);
    code[0] = code[1] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0);
    try("no return", 2, code);
    code[0] = allow;
    try("accepted", 2, code);
    code[0] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
    code[1] = (struct sock_filter)BPF_STMT(BPF_MISC | BPF_TAX, 0);
    memmove(code + 1, code, 2 * sizeof *code);
    code[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
    code[1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 5);
    code[2] = allow;
    note("mode now", raw(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0));
    try("zero at first", 3, code);
    note("getppid", raw(SYS_getppid, 0, 0, 0, 0) >= 0);
    try("long", 4060, code);
    note("strict", raw(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, 0, 0));
    return 0;
}
