/* what: code on a stack that grew and in shared memory, in processes that can't list what is mapped: no descriptor, no /proc, a rule
 * build: -O1 -static -z execstack -fno-stack-protector -Wno-trampolines
 */
#define _GNU_SOURCE
#include <linux/landlock.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "note.h"

static int call(int (*function)(int), int x) { return function(x); }

/* The trampoline of a nested function lies in its frame, and the stack grows by 64 KB a call. */
static __attribute__((noinline)) int on_stack(int depth)
{
    volatile char frame[65536];
    frame[depth] = (char)depth;
    int inner(int x) { return x + depth + frame[depth]; }
    return depth ? on_stack(depth - 1) + call(inner, 1) : call(inner, 2);
}

static int in_shared_memory(void)
{
    static const unsigned char code[] = {0xb8, 7, 0, 0, 0, 0xc3};
    int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0700), sum = 0;
    unsigned char *at = shmat(id, NULL, SHM_EXEC);
    shmctl(id, IPC_RMID, NULL);
    memcpy(at, code, sizeof code);
    for (int i = 0; i < 1000; i++)
        sum += ((int (*)(void))at)();
    return sum;
}

static void no_descriptor(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
}

static void no_proc(void)
{
    char empty[] = "/tmp/code_not_listed.XXXXXX";
    unshare(CLONE_NEWUSER);
    note("made", mkdtemp(empty) != NULL);
    note("entered", chdir(empty));
    rmdir(empty);
    note("root", chroot("."));
}

static void a_rule(void)
{
    struct landlock_ruleset_attr handled = {.handled_access_fs = LANDLOCK_ACCESS_FS_READ_FILE};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    note("rule", syscall(SYS_landlock_restrict_self, rules, 0));
    close(rules);
}

int main(void)
{
    static void (*const ways[])(void) = {no_descriptor, no_proc, a_rule};
    for (int i = 0; i < 3; i++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            ways[i]();
            note("stack", on_stack(20));
            note("shared", in_shared_memory());
            /* All that is mapped is listed to lock it; the limit may be too low for it. */
            note("locked", mlockall(MCL_CURRENT) == 0);
            _exit(i);
        }
        waitpid(child, &status, 0);
        note("status", status);
    }
    return 0;
}
