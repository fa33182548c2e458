/* what: memory faults of every kind: code, address, error bits, trap number, cr2, pc and registers of the instruction
 * build: -O1 -fno-stack-protector -fno-pie -no-pie
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

extern const char fault_begin[], fault_end[];
static sigjmp_buf back;
static char *pages, *beyond;
static char stack[65536];

static long relative(uintptr_t address)
{
    if (address - (uintptr_t)pages + 256 < 4 * 4096 + 512)
        return (long)(address - (uintptr_t)pages);
    if (address - (uintptr_t)beyond + 256 < 4096 + 512)
        return 1000000 + (long)(address - (uintptr_t)beyond);
    return (long)address;
}

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("  code", info->si_code);
    note("  address", relative((uintptr_t)info->si_addr));
    note("  trap", registers[REG_TRAPNO]);
    note("  error", registers[REG_ERR]);
    if (registers[REG_TRAPNO] == 14)
        note("  cr2", relative((uintptr_t)registers[REG_CR2]));
    note("  rcx", registers[REG_RCX]);
    note("  rdx", registers[REG_RDX]);
    note("  rsi", relative((uintptr_t)registers[REG_RSI]));
    note("  rdi", relative((uintptr_t)registers[REG_RDI]));
    siglongjmp(back, 1);
}

/* rax: the address; every case is an own instruction, so that the pc told is its own. */
#define CASE(name, text)                                                                                               \
    static __attribute__((noinline)) void name(char *at)                                                              \
    {                                                                                                                  \
        puts(#name);                                                                                                   \
        fflush(stdout);                                                                                                \
        __asm__ volatile("push %%rbx\n push %%rbp\n mov %%rsp, %%rbp\n mov $7, %%ecx\n mov $9, %%edx\n mov %%rax, %%rsi\n"           \
                         "lea 64(%%rax), %%rdi\n" text "\n mov %%rbp, %%rsp\n pop %%rbp\n pop %%rbx\n"                                                   \
                         : "+a"(at)                                                                                    \
                         :                                                                                             \
                         : "rcx", "rdx", "rsi", "rdi", "r8", "xmm0", "memory", "cc");                                  \
    }

CASE(load, "movl (%%rax), %%edx")
CASE(store, "movl %%edx, (%%rax)")
CASE(change, "incl (%%rax)")
CASE(locked, "lock xaddl %%edx, (%%rax)")
CASE(exchange, "xchgl %%edx, (%%rax)")
CASE(compare_exchange, "cmpxchg16b (%%rax)")
CASE(over_the_border, "movq %%rdx, -3(%%rax)")
CASE(load_vector, "movups -8(%%rax), %%xmm0")
CASE(push, "lea 4(%%rax), %%rsp\n push %%rcx")
CASE(pop, "mov %%rax, %%rsp\n pop %%rcx")
CASE(push_memory, "pushq (%%rax)")
CASE(pop_memory, "push $5\n popq (%%rax)")
CASE(call, "lea (%%rax), %%rsp\n call 1f\n 1: nop")
CASE(call_memory, "call *(%%rax)")
CASE(jump_memory, "jmp *8(%%rax)")
CASE(return_, "mov %%rax, %%rsp\n ret")
CASE(return_and_drop, "mov %%rax, %%rsp\n ret $16")
CASE(leave, "mov %%rax, %%rbp\n leave")
CASE(enter, "lea 4(%%rax), %%rsp\n enter $32, $0")
CASE(move_string, "lea -16(%%rax), %%rdi\n mov %%rdi, %%rsi\n mov $100, %%ecx\n rep movsb")
CASE(store_string, "lea -24(%%rax), %%rdi\n mov $50, %%ecx\n rep stosq")
CASE(translate, "mov %%rax, %%rbx\n mov $5, %%al\n xlat")
CASE(save_state, "lea 64(%%rax), %%rax\n and $-64, %%rax\n fxsave (%%rax)")
CASE(x87, "fldt (%%rax)\n fstp %%st(0)")
CASE(index_scaled, "lea -80(%%rax), %%rax\n mov $10, %%ecx\n mov (%%rax, %%rcx, 8), %%edx")
CASE(prefetch, "prefetcht0 (%%rax)")

static void (*const cases[])(char *) = {load, store, change, locked, exchange, compare_exchange, over_the_border, load_vector,
                                        push, pop, push_memory, pop_memory, call, call_memory, jump_memory, return_,
                                        return_and_drop, leave, enter, move_string, store_string, translate, save_state,
                                        x87, index_scaled, prefetch};

static void all(const char *what, char *at)
{
    note(what, 0);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        if (sigsetjmp(back, 1) == 0)
            cases[i](at);
}

int main(void)
{
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    pages = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FILE *file = tmpfile();
    beyond = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    munmap(pages + 4096, 4096);
    mprotect(pages + 2 * 4096, 4096, PROT_NONE);
    mprotect(pages + 3 * 4096, 4096, PROT_READ);
    for (int round = 0; round < 2; round++) {
        all("not mapped", pages + 4096);
        all("no access", pages + 2 * 4096);
        all("read only", pages + 3 * 4096);
        all("beyond the file's end", beyond);
        all("null", NULL);
        all("non-canonical", (char *)0x1234567800000000);
        all("the kernel's", (char *)0xffff900000001000);
    }
    return 0;
}
