/* what: code beyond its file's end, cut off, put there later, that may only be executed
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include "note.h"

enum { PAGE = 4096 };

static sigjmp_buf back;
static uintptr_t origin;

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("code", info->si_code);
    note("pc", (long)((uintptr_t)registers[REG_RIP] - origin));
    note("address", (long)((uintptr_t)info->si_addr - origin));
    note("trap", registers[REG_TRAPNO]);
    note("error", registers[REG_ERR]);
    note("rax", registers[REG_RAX]);
    siglongjmp(back, 1);
}

static void run(const char *what, uintptr_t where)
{
    note(what, 0);
    if (sigsetjmp(back, 1) == 0) {
        long result = 77;
        __asm__ volatile("call *%1" : "+a"(result) : "r"(where) : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
        note("returned", result);
    }
}

/* One page of a file, mapped with the page behind it; code (mov eax, 42; ret) ends so many bytes in front of its end. */
static unsigned char *map_file(int *file, int distance, int protection)
{
    static const unsigned char code[] = {0xb8, 42, 0, 0, 0, 0xc3};
    *file = memfd_create("code", 0);
    ftruncate(*file, PAGE);
    for (size_t i = 0; i < sizeof code; i++)
        if (PAGE - distance - (long)sizeof code + (long)i < PAGE)
            pwrite(*file, code + i, 1, PAGE - distance - (long)sizeof code + (long)i);
    unsigned char *pages = mmap(NULL, 2 * PAGE, protection, MAP_SHARED, *file, 0);
    origin = (uintptr_t)pages;
    return pages;
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    static const unsigned char later[] = {0xb8, 43, 0, 0, 0, 0xc3};
    static const int protections[] = {PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC, PROT_EXEC};
    for (int i = 0; i < 3; i++) {
        int file;
        note("protection", protections[i]);
        unsigned char *pages = map_file(&file, 0, protections[i]);
        uintptr_t code = (uintptr_t)pages + PAGE - 6;
        sigset_t all, old;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &old);
        run("up to the end, all signals blocked", code);
        sigprocmask(SIG_SETMASK, &old, NULL);
        run("up to the end", code);
        run("behind the end", (uintptr_t)pages + PAGE);
        run("behind the end again", (uintptr_t)pages + PAGE + 5);
        ftruncate(file, 2 * PAGE);
        pwrite(file, later, sizeof later, PAGE);
        run("put there later", (uintptr_t)pages + PAGE);
        pwrite(file, later, sizeof later, PAGE + 100);
        ftruncate(file, PAGE);
        run("cut off before it ran", (uintptr_t)pages + PAGE + 100);
        if (protections[i] & PROT_WRITE) {
            ftruncate(file, 0);
            run("cut off after it ran", code);
            run("cut off after it ran", code);
            ftruncate(file, PAGE);
            pwrite(file, later, sizeof later, PAGE - 6);
            run("put there again", code);
        }
        munmap(pages, 2 * PAGE);
        close(file);
        pages = map_file(&file, -3, protections[i]);
        run("over the end", (uintptr_t)pages + PAGE - 3);
        ftruncate(file, 2 * PAGE);
        pwrite(file, later + 3, 3, PAGE);
        run("over the former end", (uintptr_t)pages + PAGE - 3);
        munmap(pages, 2 * PAGE);
        close(file);
    }
    return 0;
}
