/* what: code that other calls than unmapping take away: advice for pieces, guards, pages that a child does not get, shared memory attached over it
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "note.h"

#define PAGE 4096
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

static const unsigned char constant[] = {0xb8, 7, 0, 0, 0, 0xc3};
static sigjmp_buf back;

static void handler(int number) { siglongjmp(back, number); }

static void run(const char *what, unsigned char *code)
{
    int number = sigsetjmp(back, 1), result = 0;
    if (number == 0) {
        /* Zeros are add %al, (%rax): with rax 0 they fault. */
        for (int i = 0; i < 20; i++)
            __asm__ volatile("call *%1" : "=a"(result) : "r"(code), "a"(0) : "rcx", "rdx", "memory", "cc");
        note(what, result);
    } else {
        note(what, -number);
    }
}

static unsigned char *make(int n_pages)
{
    unsigned char *code = mmap(NULL, n_pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < n_pages; i++)
        memcpy(code + i * PAGE, constant, sizeof constant);
    mprotect(code, n_pages * PAGE, PROT_READ | PROT_EXEC);
    for (int i = 0; i < n_pages; i++)
        run("before", code + i * PAGE);
    return code;
}

static void advise_pieces(void)
{
    unsigned char *code = make(3);
    struct iovec pieces[] = {{code, PAGE}, {code + 2 * PAGE, PAGE}};
    int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    note("pieces", syscall(SYS_process_madvise, self, pieces, 2, MADV_DONTNEED, 0));
    for (int i = 0; i < 3; i++)
        run("after", code + i * PAGE);
    note("bad vector", syscall(SYS_process_madvise, self, 16, 2, MADV_DONTNEED, 0));
    close(self);
    munmap(code, 3 * PAGE);
}

static void guard(void)
{
    unsigned char *code = make(1);
    note("guard", madvise(code, PAGE, MADV_GUARD_INSTALL));
    run("guarded", code);
    note("no guard", madvise(code, PAGE, MADV_GUARD_REMOVE));
    run("not guarded", code);
    munmap(code, PAGE);
}

static void in_child(const char *what, int advice, int undone_by)
{
    unsigned char *code = make(2);
    int status;
    note(what, madvise(code, 2 * PAGE, advice));
    if (undone_by != 0)
        note("undone", madvise(code + PAGE, PAGE, undone_by));
    pid_t child = fork();
    if (child == 0) {
        run("in the child", code);
        run("in the child, the second page", code + PAGE);
        _exit(3);
    }
    waitpid(child, &status, 0);
    note("its status", status);
    run("in the parent", code);
    munmap(code, 2 * PAGE);
}

static void attach(void)
{
    unsigned char *code = make(1);
    int segment = shmget(IPC_PRIVATE, PAGE, 0700);
    note("attached over it", shmat(segment, code, SHM_REMAP | SHM_EXEC) == code);
    run("zeros", code);
    memcpy(code, constant, sizeof constant);
    code[1] = 9;
    run("written", code);
    note("detached", shmdt(code));
    run("detached", code);
    shmctl(segment, IPC_RMID, NULL);
}

int main(void)
{
    signal(SIGSEGV, handler);
    advise_pieces();
    guard();
    in_child("wiped", MADV_WIPEONFORK, 0);
    in_child("wiped, but kept", MADV_WIPEONFORK, MADV_KEEPONFORK);
    in_child("not inherited", MADV_DONTFORK, 0);
    in_child("not inherited, but for one", MADV_DONTFORK, MADV_DOFORK);
    attach();
    return 0;
}
