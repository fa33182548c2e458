/* what: code at address zero and in the last page of all: called, branched to and out of by many ways, and run off its end
 * build: -O1
 * needs: root
 */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "note.h"

#define PAGE 0x1000ul
#define LAST_PAGE 0x7fffffffe000ul

typedef long (*function)(long);

static sigjmp_buf back;

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("  signal", number);
    note("  address", (long)info->si_addr);
    note("  trap", registers[REG_TRAPNO]);
    note("  rip", registers[REG_RIP]);
    siglongjmp(back, 1);
}

/* Hidden from the compiler, for which address zero holds nothing. */
static function at(uintptr_t address)
{
    __asm__("" : "+r"(address));
    return (function)address;
}

static void put(uintptr_t base, uintptr_t offset, const void *code, size_t size)
{
    uintptr_t address = base + offset;
    mprotect((void *)base, PAGE, PROT_READ | PROT_WRITE);
    __asm__("" : "+r"(address));
    memcpy((void *)address, code, size);
    mprotect((void *)base, PAGE, PROT_READ | PROT_EXEC);
}

__attribute__((noinline)) static long twice(long x) { return 2 * x; }
__attribute__((noinline)) static long square(long x) { return x * x; }
__attribute__((noinline)) static long seven(long x) { return x ? 7 : 8; }

__attribute__((noinline)) static long call_all(function *functions, int n, int rounds)
{
    long sum = 0;
    for (int i = 0; i < rounds; i++)
        for (int k = 0; k < n; k++)
            sum += functions[k](i);
    return sum;
}

static void try(const char *what, uintptr_t address, long argument)
{
    note(what, 0);
    if (sigsetjmp(back, 1) == 0)
        note("  returned", at(address)(argument));
}

static void use(uintptr_t base)
{
    static const unsigned char add_one[] = {0x48, 0x8d, 0x47, 0x01, 0xc3};  /* lea rax, [rdi + 1]; ret */
    static const unsigned char add_two[] = {0x48, 0x8d, 0x47, 0x02, 0xc3};  /* lea rax, [rdi + 2]; ret */
    static const unsigned char jump[] = {0xff, 0xe7};                       /* jmp rdi */
    static const unsigned char call[] = {0xff, 0xd7, 0xc3};                 /* call rdi; ret */
    static const unsigned char undefined[] = {0x0f, 0x0b};                  /* ud2 */
    put(base, 0, add_one, sizeof add_one);
    put(base, 16, add_two, sizeof add_two);
    function functions[] = {at(base), twice, square, at(base + 16)};
    note("one target", call_all(functions, 1, 100));
    note("two targets", call_all(functions, 2, 100));
    note("all targets", call_all(functions, 4, 100));
    put(base, PAGE - 4, add_one, 4);
    try("off the end", base + PAGE - 4, 5);
    put(base, PAGE - sizeof jump, call, sizeof jump);
    try("call at the end", base + PAGE - sizeof jump, (long)seven);
    try("call at the end, of the last address", base + PAGE - sizeof jump, -1);
    put(base, 0, jump, sizeof jump);
    try("jump", base, (long)seven);
    try("jump to the last address", base, -1);
    try("jump to no address", base, 1l << 62);
    put(base, 0, call, sizeof call);
    try("call", base, (long)seven);
    try("call of the last address", base, -1);
    put(base, 0, undefined, sizeof undefined);
    try("undefined", base, 1);
}

/* Direct branches by `distance`: below address zero, or above what a program can map. */
static void leave(uintptr_t base, int distance)
{
    unsigned char jump[] = {0x90, 0xe9, 0, 0, 0, 0};                        /* nop; jmp */
    unsigned char call[] = {0x90, 0xe8, 0, 0, 0, 0};                        /* nop; call */
    unsigned char branch[] = {0x85, 0xff, 0x0f, 0x84, 0, 0, 0, 0, 0x8d, 0x47, 0x01, 0xc3};
    memcpy(jump + 2, &distance, sizeof distance);
    memcpy(call + 2, &distance, sizeof distance);
    memcpy(branch + 4, &distance, sizeof distance);                         /* test edi, edi; jz; lea eax, [rdi + 1]; ret */
    put(base, 0, jump, sizeof jump);
    try("direct jump", base, 1);
    put(base, 0, call, sizeof call);
    try("direct call", base, 1);
    put(base, 0, branch, sizeof branch);
    for (int i = 0; i < 100; i++)
        at(base)(1 + i);
    try("branch not taken", base, 1);
    try("branch taken", base, 0);
    try("branch taken again", base, 0);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGILL, &action, NULL);
    for (int page = 0; page < 2; page++) {
        const uintptr_t base = page == 0 ? 0 : LAST_PAGE;
        void *mapped = mmap((void *)base, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        note("mapped", mapped == (void *)base ? 0 : errno);
        if (mapped == MAP_FAILED)
            continue;
        use(base);
        leave(base, page == 0 ? -0x2000 : 0x1000);
        if (page == 1)
            leave(base, 0x10000);
        munmap(mapped, PAGE);
        try("unmapped", base, 1);
    }
    return 0;
}
