/* what: jumps to unmapped, non-canonical and non-executable memory, and off the end of a page: the handler sees the right address and pc
 * build: -O1 -fno-stack-protector
 * traits: oracle-instructions
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "note.h"

static sigjmp_buf back;
static uintptr_t target;

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("code", info->si_code);
    note("pc is the target", (uintptr_t)registers[REG_RIP] == target);
    note("address is the target", (uintptr_t)info->si_addr == target);
    note("error", registers[REG_ERR]);
    siglongjmp(back, 1);
}

static void go(const char *what, void *where)
{
    puts(what);
    fflush(stdout);
    target = (uintptr_t)where;
    if (sigsetjmp(back, 1) == 0)
        ((void (*)(void))where)();
}

int main(void)
{
    static unsigned char data[64] = {0xc3};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    unsigned char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(pages + 4096, 4096);
    memset(pages, 0x90, 4096);
    for (int i = 0; i < 2; i++) {
        go("null", NULL);
        go("unmapped", (void *)0x12345000);
        go("data", data);
        target = (uintptr_t)pages + 4096;
        puts("off the end");
        fflush(stdout);
        if (sigsetjmp(back, 1) == 0)
            ((void (*)(void))(pages + 4000))();
        unsigned char *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        gone[0] = 0xc3;
        ((void (*)(void))gone)();
        mprotect(gone, 4096, PROT_READ);
        go("not executable any more", gone);
        munmap(gone, 4096);
        go("gone", gone);
    }
    return 0;
}
