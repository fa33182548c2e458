/* what: selectors: loads of gs, fs, ds, es and ss, null, the usual one, of a segment of its own, and bad ones; strings and tables through gs
 * build: -O1 -mfsgsbase -fno-stack-protector -mno-red-zone
 * needs: fsgsbase
 */
#define _GNU_SOURCE
#include <asm/ldt.h>
#include <asm/prctl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "note.h"

#define LOCAL(index) ((index) << 3 | 7)
static unsigned char *low; /* what the program's own segment starts at: its base has 32 bits */
static sigjmp_buf back;

static void on_fault(int number, siginfo_t *info, void *opaque)
{
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("  code", info->si_code);
    note("  error", registers[REG_ERR]);
    note("  trap", registers[REG_TRAPNO]);
    siglongjmp(back, 1);
}

static unsigned gs(void)
{
    unsigned selector;
    __asm__ volatile("mov %%gs, %0" : "=r"(selector));
    return selector;
}

static uint64_t gs_base(void)
{
    uint64_t base;
    __asm__ volatile("rdgsbase %0" : "=r"(base));
    return base;
}

static void show_gs(const char *what) { printf("%s: selector %x base %lx\n", what, gs(), gs_base()); }

#define TRY(what, ...)                   \
    do {                                 \
        puts(what);                      \
        fflush(stdout);                  \
        if (sigsetjmp(back, 1) == 0) {   \
            __VA_ARGS__;                 \
            puts("done");                \
        }                                \
    } while (0)

static void load_gs(unsigned selector) { __asm__ volatile("mov %0, %%gs" ::"r"(selector)); }
static void load_ss(unsigned selector)
{
    unsigned before, after;
    __asm__ volatile("mov %%ss, %0\n mov %2, %%ss\n mov %%ss, %1" : "=&r"(before), "=&r"(after) : "r"(selector));
    printf("ss %x, then %x\n", before, after);
    fflush(stdout); /* a system call */
    __asm__ volatile("mov %%ss, %0" : "=r"(after));
    printf("after a call %x\n", after);
}

static void move_gs_in_all_ways(void)
{
    load_gs(LOCAL(1));
    show_gs("mov");
    printf("byte %x\n", ({ unsigned byte; __asm__ volatile("movzbl %%gs:3, %0" : "=r"(byte)); byte; }));
    load_gs(0);
    __asm__ volatile("pushq %0\n popq %%gs" ::"r"((uint64_t)LOCAL(1)) : "memory");
    show_gs("pop");
    struct { uint32_t offset; uint16_t selector; } __attribute__((packed)) pointer = {5, 0};
    unsigned offset;
    __asm__ volatile("lgs %1, %0" : "=r"(offset) : "m"(pointer));
    show_gs("lgs");
    printf("offset %u\n", offset);
    load_gs(LOCAL(1));
    __asm__ volatile("wrgsbase %0" ::"r"((uint64_t)low + 16));
    show_gs("wrgsbase leaves the selector");
    syscall(SYS_arch_prctl, ARCH_SET_GS, low + 32);
    show_gs("arch_prctl does not");
    load_gs(0x2b);
    show_gs("usual data");
    load_gs(0); /* one of another privilege is this one after any interrupt */
    show_gs("null");
}

static __attribute__((noinline)) uint64_t answer(void) { return 42; }

static void use_gs_strings(void)
{
    syscall(SYS_arch_prctl, ARCH_SET_GS, low);
    unsigned char copy[64] = {0};
    uint64_t from = 4, count = 40;
    void *to = copy;
    __asm__ volatile("cld\n rep movsb %%gs:(%%rsi), (%%rdi)" : "+S"(from), "+D"(to), "+c"(count)::"memory");
    printf("moved %lu %ld %lu: %x %x\n", from, (long)((unsigned char *)to - copy), count, copy[0], copy[39]);
    from = 8;
    uint64_t word;
    __asm__ volatile("lodsq %%gs:(%%rsi), %%rax" : "=a"(word), "+S"(from)::"memory");
    printf("loaded %lx %lu\n", word, from);
    uint64_t index = 9;
    __asm__ volatile("mov $4, %%ebx\n xlat %%gs:(%%rbx)" : "+a"(index)::"rbx");
    printf("translated %lx\n", index);
    from = 1ul << 32 | 6; /* 32 bits of it are the address */
    __asm__ volatile("movzbl %%gs:(%%eax), %%eax" : "=a"(word) : "a"(from));
    printf("narrow %lx\n", word);
    from = 2, count = 3, to = low + 2;
    __asm__ volatile("repe cmpsb (%%rdi), %%gs:(%%rsi)\n sete %%al\n movzbl %%al, %%eax"
                     : "=a"(word), "+S"(from), "+D"(to), "+c"(count)::"memory", "cc");
    printf("compared %lu %lu %lu\n", word, from, count);
    TRY("beyond the end", from = 4096 - 8; to = copy; count = 16;
        __asm__ volatile("rep movsb %%gs:(%%rsi), (%%rdi)" : "+S"(from), "+D"(to), "+c"(count)::"memory"));
    static const void *callee;
    callee = &&called;
    memcpy(low + 64, &callee, sizeof callee);
    __asm__ goto("mov $64, %%eax\n jmp *%%gs:(%%eax)\n ud2" ::: "rax", "memory" : called);
called:
    puts("jumped");
    callee = answer;
    memcpy(low + 64, &callee, sizeof callee);
    __asm__ volatile("mov $64, %%eax\n call *%%gs:(%%eax)" : "=a"(word)::"rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    printf("called %lu\n", word);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    low = mmap((void *)0x20000000, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    munmap(low + 4096, 4096);
    for (int i = 0; i < 4096; i++)
        low[i] = (unsigned char)(i * 7 + 1);
    struct user_desc data = {.entry_number = 1, .base_addr = (unsigned)(uintptr_t)low, .limit = 0xfff, .seg_32bit = 1};
    if (syscall(SYS_modify_ldt, 1, &data, sizeof data) != 0) {
        puts("the kernel has no local segments");
        return 0;
    }
    for (int round = 0; round < 2; round++) {
        move_gs_in_all_ways();
        use_gs_strings();
        load_gs(0);
        TRY("no such segment", load_gs(LOCAL(5)));
        TRY("the kernel's", load_gs(0x10));
        show_gs("after them");
        unsigned fs_before;
        __asm__ volatile("mov %%fs, %0" : "=r"(fs_before));
        printf("fs %x\n", fs_before);
        unsigned ds, es;
        __asm__ volatile("mov %2, %%ds\n mov %2, %%es\n mov %%ds, %0\n mov %%es, %1\n mov %3, %%ds\n mov %3, %%es"
                         : "=&r"(ds), "=&r"(es)
                         : "r"(LOCAL(1)), "r"(0));
        printf("ds %x es %x\n", ds, es);
        load_ss(LOCAL(1));
        TRY("code in ss", load_ss(0x33));
        TRY("nothing in ss", load_ss(0));
    }
    return 0;
}
