/* what: rt_sigreturn takes the selectors of code and stack from the frame: 32-bit code, a stack of the program's own, and such as can't be loaded
 * build: -O1 -fno-stack-protector -fno-pie -no-pie
 * lost: uncounted_instructions
 */
#define _GNU_SOURCE
#include <asm/ldt.h>
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

#define CODE ((unsigned char *)0x10000000)
#define LOCAL(index) ((index) << 3 | 7)
enum { CS = 0, SS = 3 };

static gregset_t before;
static int cs, ss, takes_strict;
static sigjmp_buf back;

static uint16_t *selectors(void *opaque) { return (uint16_t *)&((ucontext_t *)opaque)->uc_mcontext.gregs[REG_CSGSFS]; }

/* Returns to code of two meanings, with the selectors that are asked for. */
static void on_user(int number, siginfo_t *info, void *opaque)
{
    (void)number, (void)info;
    ucontext_t *context = opaque;
    memcpy(before, context->uc_mcontext.gregs, sizeof before);
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)CODE;
    context->uc_mcontext.gregs[REG_RSP] = 0x11008000;
    selectors(opaque)[CS] = (uint16_t)cs;
    selectors(opaque)[SS] = (uint16_t)ss;
    if (!takes_strict)
        context->uc_flags &= ~4ul;
}

/* Shows where that led, and goes back to where it came from. */
static void on_end(int number, siginfo_t *info, void *opaque)
{
    ucontext_t *context = opaque;
    greg_t *registers = context->uc_mcontext.gregs;
    note("signal", number);
    note("  code", info->si_code);
    note("  cs", selectors(opaque)[CS]);
    note("  ss", selectors(opaque)[SS]);
    note("  at", registers[REG_RIP] - (greg_t)(uintptr_t)CODE);
    note("  eax", registers[REG_RAX]);
    note("  error", registers[REG_ERR]);
    note("  trap", registers[REG_TRAPNO]);
    note("  strict", context->uc_flags >> 2 & 1);
    memcpy(registers, before, sizeof before);
    if (number == SIGILL)
        siglongjmp(back, 1);
}

static void go(const char *what, int code, int stack)
{
    for (takes_strict = 0; takes_strict < 2; takes_strict++) {
        puts(what);
        fflush(stdout);
        cs = code, ss = stack;
        if (sigsetjmp(back, 1) == 0)
            raise(SIGUSR1);
    }
}

int main(void)
{
    mmap(CODE, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    mmap((void *)0x11000000, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    /* mov eax, 41; 32-bit code: inc eax, 64-bit code: a prefix of nop; nop; int3 */
    memcpy(CODE, "\xb8\x29\0\0\0\x40\x90\xcc\x90", 9);
    static char stack[65536];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    struct sigaction action = {.sa_sigaction = on_user, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_sigaction = on_end;
    const int ends[] = {SIGTRAP, SIGSEGV, SIGBUS, SIGILL};
    for (int i = 0; i < 4; i++)
        sigaction(ends[i], &action, NULL);
    struct user_desc data = {.entry_number = 1, .limit = 0xfffff, .seg_32bit = 1, .limit_in_pages = 1};
    syscall(SYS_modify_ldt, 1, &data, sizeof data);
    struct user_desc code = data;
    code.entry_number = 2, code.contents = 2;
    syscall(SYS_modify_ldt, 1, &code, sizeof code);
    code.entry_number = 3, code.seg_32bit = 0;
    syscall(SYS_modify_ldt, 1, &code, sizeof code);
    code.entry_number = 4, code.seg_32bit = 1, code.seg_not_present = 1;
    syscall(SYS_modify_ldt, 1, &code, sizeof code);
    for (int round = 0; round < 2; round++) {
        go("64-bit code", 0x33, 0x2b);
        go("without the user's privilege", 0x30, 0x28);
        go("32-bit code", 0x23, 0x2b);
        go("32-bit code of its own", LOCAL(2), 0x2b);
        go("with a stack of its own", LOCAL(2), LOCAL(1));
        go("64-bit code with a stack of its own", 0x33, LOCAL(1));
        go("code that is not present", LOCAL(4), 0x2b);
        go("code that is not there", LOCAL(9), 0x2b);
        go("data for code", 0x2b, 0x2b);
        go("no code", 0, 0x2b);
        go("code for a stack", 0x33, 0x33);
        go("a stack that is not there", 0x33, LOCAL(9));
        go("no stack", 0x33, 0);
    }
    return 0;
}
