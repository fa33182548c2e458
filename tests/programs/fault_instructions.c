/* what: what may not be executed: undefined, privileged, those of 32-bit code, software interrupts, ports; SIGILL, SIGSEGV, SIGTRAP
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
#include "note.h"

static sigjmp_buf back;
static unsigned char *pages, *code;
static unsigned n;

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("  signal", number);
    note("  code", info->si_code);
    note("  pc", registers[REG_RIP] - (greg_t)code);
    note("  address", info->si_addr == NULL ? -1 : (long)((greg_t)info->si_addr - (greg_t)code));
    note("  trap", registers[REG_TRAPNO]);
    note("  error", registers[REG_ERR]);
    note("  rbx", registers[REG_RBX]);
    siglongjmp(back, 1);
}

static void try(const char *name, const char *bytes, size_t size)
{
    note(name, (long)size);
    code = pages + 64 * n++; /* each has its own place */
    memcpy(code, "\xbb\x05\x00\x00\x00", 5);                    /* mov $5, %ebx */
    memcpy(code + 5, bytes, size);
    memcpy(code + 5 + size, "\xc3", 1);
    if (sigsetjmp(back, 1) == 0) {
        __asm__ volatile("call *%0" : : "r"(code) : "rax", "rbx", "rcx", "rdx", "memory", "cc");
        note("  none", 0);
    }
}

#define TRY(name, bytes) try(name, bytes, sizeof bytes - 1)

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    static const int signals[] = {SIGILL, SIGSEGV, SIGTRAP, SIGBUS, SIGFPE};
    for (int i = 0; i < 5; i++)
        sigaction(signals[i], &action, NULL);
    pages = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < 2; round++) {
        n = 0;
        TRY("ud2", "\x0f\x0b");
        TRY("ud1", "\x0f\xb9\xc0");
        TRY("ud0", "\x0f\xff\xc0");
        TRY("push cs", "\x0e");
        TRY("pusha", "\x60");
        TRY("daa", "\x27");
        TRY("into", "\xce");
        TRY("aam", "\xd4\x0a");
        TRY("far call", "\x9a\x00\x00\x00\x00\x33\x00");
        TRY("lock of a register", "\xf0\x01\xc0");
        TRY("lock of a load", "\xf0\x8b\x04\x24");
        TRY("lea of a register", "\x8d\xc0");
        TRY("mov to cs", "\x8e\xc8");
        TRY("undefined 0f 0a", "\x0f\x0a");
        TRY("int3", "\xcc");
        TRY("int 3", "\xcd\x03");
        TRY("int1", "\xf1");
        TRY("int 4", "\xcd\x04");
        TRY("int 0x81", "\xcd\x81");
        TRY("int 0x20", "\xcd\x20");
        TRY("hlt", "\xf4");
        TRY("cli", "\xfa");
        TRY("sti", "\xfb");
        TRY("in", "\xe4\x70");
        TRY("out", "\xee");
        TRY("insb", "\x6c");
        TRY("mov from cr0", "\x0f\x20\xc0");
        TRY("mov to dr7", "\x0f\x23\xf8");
        TRY("rdmsr", "\x0f\x32");
        TRY("wrmsr", "\x0f\x30");
        TRY("rdpmc", "\x0f\x33");
        TRY("invd", "\x0f\x08");
        TRY("wbinvd", "\x0f\x09");
        TRY("clts", "\x0f\x06");
        TRY("lgdt", "\x0f\x01\x14\x24");
        TRY("swapgs", "\x0f\x01\xf8");
        TRY("sysret", "\x48\x0f\x07");
        TRY("xsetbv", "\x0f\x01\xd1");
        TRY("mov to a bad selector", "\xb8\xf8\x00\x00\x00\x8e\xd8");
        TRY("load of ss with null", "\x31\xc0\x8e\xd0");
    }
    return 0;
}
