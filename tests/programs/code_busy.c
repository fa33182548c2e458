/* what: code that ran often before it changes: written by stores, strings, system calls, itself, moved
 * build: -O1
 * traits: oracle-instructions
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include "note.h"

enum { PAGES = 8, OFTEN = 100 };
#include "busy.h"

static void by_stores(void)
{
    unsigned char *at = make(0, 0, 1);
    for (int i = 0; i < 4; i++) {
        note("before the store", often(at));
        at[2] = (unsigned char)(10 * i + 7);
        note("after it", ((function *)(uintptr_t)at)(0));
    }
    /* one store over the border of two pages */
    unsigned char *border = make(1, PAGE - 4, 100);
    note("over the border", often(border));
    uint64_t bytes;
    memcpy(&bytes, border, 8);
    bytes ^= (uint64_t)0x55 << 40;
    *(volatile uint64_t *)border = bytes;
    note("after a store there", ((function *)(uintptr_t)border)(0));
    /* a string over three pages */
    make(1, 64, 3), make(2, 64, 4), make(3, 64, 5);
    note("three", often(code + PAGE + 64) + often(code + 2 * PAGE + 64) + often(code + 3 * PAGE + 64));
    unsigned char *from = code + 4 * PAGE, *to = code + PAGE;
    for (int page = 0; page < 3; page++)
        memcpy(from + page * PAGE + 64, make(1 + page, 64, 3 + page), sizeof adder), from[page * PAGE + 66] += 100;
    size_t left = 3 * PAGE;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
    note("copied", often(code + PAGE + 64) + often(code + 2 * PAGE + 64) + often(code + 3 * PAGE + 64));
}

static void by_the_kernel(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        _exit(1);
    unsigned char *at = make(0, 128, 1), next[8];
    memcpy(next, at, sizeof adder);
    note("before read", often(at));
    next[2] = 40;
    if (write(ends[1], next, sizeof adder) < 0 || read(ends[0], at, sizeof adder) != sizeof adder)
        note("no read", 0);
    note("after it", ((function *)(uintptr_t)at)(0));

    /* the call names a vector, and that the code */
    unsigned char *second = make(5, 128, 2);
    note("before readv", often(second));
    next[2] = 50;
    struct iovec vector = {second, sizeof adder};
    if (write(ends[1], next, sizeof adder) < 0 || readv(ends[0], &vector, 1) != sizeof adder)
        note("no readv", 0);
    note("after it", ((function *)(uintptr_t)second)(0));
    struct iovec bad = {(void *)16, 8};
    if (write(ends[1], next, 8) < 0)
        _exit(1);
    note("bad vector", readv(ends[0], &bad, 1));
    close(ends[0]), close(ends[1]);
}

/* test edi, edi; jmp other / other: sete al; movzx eax, al; ret */
static void flags_over_pages(void)
{
    unsigned char *first = code + 6 * PAGE, *second = code + 7 * PAGE;
    static const unsigned char tester[] = {0x85, 0xff, 0xe9};
    static const unsigned char blind[] = {0x83, 0xf8, 0x01, 0xb8, 9, 0, 0, 0, 0xc3};
    static const unsigned char seeing[] = {0x0f, 0x94, 0xc0, 0x0f, 0xb6, 0xc0, 0xc3};
    memcpy(first, tester, sizeof tester);
    int32_t distance = (int32_t)(second - (first + 7));
    memcpy(first + 3, &distance, 4);
    for (int i = 0; i < 3; i++) {
        memcpy(second, blind, sizeof blind);
        note("flags are dead", often(first));
        memcpy(second, seeing, sizeof seeing);
        note("flags are seen", often(first));
    }
}

/* mov byte [rip+1], dil; mov eax, 1; ret */
static void by_itself(void)
{
    static const unsigned char itself[] = {0x40, 0x88, 0x3d, 1, 0, 0, 0, 0xb8, 1, 0, 0, 0, 0xc3};
    unsigned char *at = code + 256;
    memcpy(at, itself, sizeof itself);
    long sum = 0;
    for (int i = 0; i < OFTEN; i++)
        sum = sum * 3 + ((function *)(uintptr_t)at)(i & 0x7f);
    note("by itself", sum);
    /* beside it */
    unsigned char *beside = make(0, 512, 5);
    for (int i = 0; i < 5; i++)
        sum += often(beside) + ((function *)(uintptr_t)at)(i);
    note("beside it", sum);
}

static sigjmp_buf back;

static void on_fault(int number, siginfo_t *info, void *context)
{
    note("fault", number);
    note("code", info->si_code);
    note("offset", (unsigned char *)info->si_addr - code);
    (void)context;
    siglongjmp(back, 1);
}

static void real_faults(void)
{
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before);
    unsigned char *volatile at = make(3, 0, 1);
    for (volatile int i = 0; i < 3; i++) {
        note("before mprotect", often(at));
        mprotect(code + 3 * PAGE, PAGE, PROT_READ | PROT_EXEC);
        if (sigsetjmp(back, 1) == 0)
            at[2] = 9;
        note("not written", ((function *)(uintptr_t)at)(0));
        mprotect(code + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
        at[2] = (unsigned char)(20 + i);
        note("written", often(at));
    }
    sigaction(SIGSEGV, &before, NULL);
}

static void moved(void)
{
    unsigned char *at = make(0, 0, 3);
    note("before mremap", often(at));
    unsigned char *there = mremap(code, PAGES * PAGE, 2 * PAGES * PAGE, MREMAP_MAYMOVE);
    note("moved", there != MAP_FAILED);
    code = there;
    note("there", often(code));
    code[2] = 90;
    note("written there", often(code));
}

int main(void)
{
    code = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    by_stores();
    flags_over_pages();
    by_itself();
    real_faults();
    by_the_kernel();
    moved();
    return 0;
}
