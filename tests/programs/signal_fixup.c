/* what: a handler of SIGSEGV repairs what caused the fault, in memory, in a register or in the instruction pointer, and returns
 * build: -O1
 * traits: oracle
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "note.h"

#pragma GCC optimize("no-unroll-loops", "no-reorder-blocks-and-partition")
static char *page;
static char cell[8] = "cell";
static int how;
extern char faulting_load[], faulting_store[], after_store[], faulting_middle[];

static void handler(int number, siginfo_t *info, void *opaque)
{
    ucontext_t *context = opaque;
    greg_t *registers = context->uc_mcontext.gregs;
    note("signal", number);
    note("code", info->si_code);
    note("address right", info->si_addr == page + 5 || info->si_addr == (void *)(uintptr_t)0x10);
    switch (how) {
    case 0:
        note("at the load", (char *)registers[REG_RIP] == faulting_load);
        mprotect(page, 4096, PROT_READ | PROT_WRITE);
        break;
    case 1:
        note("at the store", (char *)registers[REG_RIP] == faulting_store);
        note("error code", registers[REG_ERR]);
        registers[REG_RIP] = (greg_t)after_store;
        break;
    case 2:
        note("at the middle", (char *)registers[REG_RIP] == faulting_middle);
        note("rax before it", registers[REG_RAX]);
        note("rcx before it", registers[REG_RCX]);
        note("carry before it", registers[REG_EFL] & 1);
        registers[REG_RDX] = (greg_t)cell;
        break;
    }
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(page, "hello, page");
    for (int i = 0; i < 3; i++) {
        long value;
        how = 0;
        mprotect(page, 4096, PROT_NONE);
        __asm__ volatile("faulting_load: movsbq 5(%1), %0" : "=r"(value) : "r"(page) : "memory");
        note("value", value);
        how = 1;
        mprotect(page, 4096, PROT_READ);
        __asm__ volatile("faulting_store: movb $9, 5(%0)\n ud2\nafter_store: nop" ::"r"(page) : "memory");
        note("not stored", page[5]);
        how = 2;
        long rax = 5, rcx = 6, got, carry;
        __asm__ volatile("mov $0x10, %%edx\n"
                         "add $10, %%rax\n"
                         "imul %%rax, %%rcx\n"
                         "stc\n"
                         "faulting_middle: movsbq (%%rdx), %%rdx\n"
                         "sbb %%rbx, %%rbx\n"
                         "add %%rdx, %%rax\n"
                         : "+a"(rax), "+c"(rcx), "=&d"(got), "=&b"(carry)
                         :
                         : "cc", "memory");
        note("rax", rax);
        note("rcx", rcx);
        note("rdx", got);
        note("carry", carry);
    }
    return 0;
}
