/* what: code in System V shared memory, attached twice, once to write; detached and gone; other code at its place; READ_IMPLIES_EXEC
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/shm.h>
#include <ucontext.h>
#include "note.h"

static sigjmp_buf back;

static void handler(int number) { siglongjmp(back, number); }

static void run(const char *what, unsigned char *code)
{
    int number = sigsetjmp(back, 1);
    if (number == 0)
        note(what, ((int (*)(void))code)());
    else
        note(what, -number);
}

static void emit(unsigned char *at, int value)
{
    at[0] = 0xb8;
    memcpy(at + 1, &value, 4);
    at[5] = 0xc3;
}

int main(void)
{
    signal(SIGSEGV, handler);
    for (int round = 0; round < 3; round++) {
        int id = shmget(IPC_PRIVATE, 8192, IPC_CREAT | 0700);
        unsigned char *writable = shmat(id, NULL, 0), *executable = shmat(id, NULL, SHM_EXEC | SHM_RDONLY);
        shmctl(id, IPC_RMID, NULL);
        for (int i = 0; i < 5; i++) {
            emit(writable, i);
            emit(writable + 4096, 100 + i);
            run("first page", executable);
            run("second page", executable + 4096);
        }
        note("detached", shmdt(executable));
        run("gone", executable);
        unsigned char *other = mmap(executable, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        emit(other, 55);
        run("other code there", executable);
        run("nothing behind it", executable + 4096);
        munmap(other, 4096);
        shmdt(writable);
    }
    personality(personality(0xffffffff) | READ_IMPLIES_EXEC);
    for (int i = 0; i < 4; i++) {
        unsigned char *readable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        emit(readable, 60 + i);
        run("readable is executable", readable);
        emit(readable, 70 + i);
        run("and written", readable);
        mprotect(readable, 4096, PROT_READ);
        run("and read only", readable);
        munmap(readable, 4096);
        run("gone", readable);
    }
    return 0;
}
