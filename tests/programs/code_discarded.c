/* what: code thrown away by madvise: private pages become zero, a file's come back as they are in the file; shared ones stay
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "note.h"

static sigjmp_buf back;

static void handler(int number) { siglongjmp(back, number); }

static void run(const char *what, unsigned char *code)
{
    int number = sigsetjmp(back, 1), result = 0;
    if (number == 0) {
        /* Zeros are add %al, (%rax): with rax 0 they fault. */
        __asm__ volatile("call *%1" : "=a"(result) : "r"(code), "a"(0) : "rcx", "rdx", "memory", "cc");
        note(what, result);
    } else {
        note(what, -number);
    }
}

int main(void)
{
    static const unsigned char constant[] = {0xb8, 7, 0, 0, 0, 0xc3};
    signal(SIGSEGV, handler);
    int file = memfd_create("code", 0);
    if (ftruncate(file, 4096) != 0 || pwrite(file, constant, sizeof constant, 0) != sizeof constant)
        return 1;
    for (int round = 0; round < 3; round++) {
        unsigned char *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        unsigned char *copy = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
        unsigned char *shared = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
        memcpy(own, constant, sizeof constant);
        copy[1] = 8;
        mprotect(own, 4096, PROT_READ | PROT_EXEC);
        mprotect(copy, 4096, PROT_READ | PROT_EXEC);
        run("own", own);
        run("copy", copy);
        run("shared", shared);
        note("thrown away", madvise(own, 4096, MADV_DONTNEED) + madvise(copy, 4096, MADV_DONTNEED) + madvise(shared, 4096, MADV_DONTNEED));
        run("own", own);
        run("copy", copy);
        run("shared", shared);
        munmap(own, 4096);
        munmap(copy, 4096);
        munmap(shared, 4096);
    }
    return 0;
}
