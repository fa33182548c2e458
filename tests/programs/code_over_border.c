/* what: instructions over the border of two mappings: both executable, one writable, the second not executable, or gone
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

enum { PAGE = 4096 };

static sigjmp_buf back;
static uintptr_t border;

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("code", info->si_code);
    note("pc from the border", (long)((uintptr_t)registers[REG_RIP] - border));
    note("address from the border", (long)((uintptr_t)info->si_addr - border));
    note("error", registers[REG_ERR]);
    note("flags have no trap", (registers[REG_EFL] & 0x100) == 0);
    siglongjmp(back, 1);
}

static void run(const char *what, unsigned char *pages)
{
    int (*function)(void) = (int (*)(void))(pages + PAGE - 3);
    border = (uintptr_t)pages + PAGE;
    note(what, 0);
    if (sigsetjmp(back, 1) == 0)
        note("returned", function());
}

int main(void)
{
    /* mov eax, 42; ret, of which three bytes are in front of the border */
    static const unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3};
    static const int second[] = {PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC, PROT_READ, PROT_NONE};
    static const char *const names[] = {"r-x", "rwx", "r--", "---"};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    for (int first = 0; first < 2; first++) {
        for (int i = 0; i < 4; i++) {
            unsigned char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memcpy(pages + PAGE - 3, code, sizeof code);
            mprotect(pages, PAGE, second[first]);
            mprotect(pages + PAGE, PAGE, second[i]);
            for (int times = 0; times < 3; times++)
                run(names[i], pages);
            if (i == 1) {
                /* What is written behind the border is what runs. */
                pages[PAGE] = 1;
                run("rewritten", pages);
                pages[PAGE] = 2;
                run("rewritten", pages);
            }
            mprotect(pages + PAGE, PAGE, PROT_READ | PROT_EXEC);
            run("executable again", pages);
            munmap(pages + PAGE, PAGE);
            run("gone", pages);
            munmap(pages, PAGE);
        }
    }
    return 0;
}
