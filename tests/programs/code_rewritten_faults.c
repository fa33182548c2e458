/* what: code rewritten between faults: one place has a different instruction that faults each time, with a fixup or a jump out
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
static unsigned char *code;
static int skipped;

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("  code", info->si_code);
    note("  pc", registers[REG_RIP] - (greg_t)code);
    if (skipped == 0)
        siglongjmp(back, 1);
    registers[REG_RIP] += skipped;
}

static void run(const char *bytes, int size)
{
    memcpy(code, "\xbb\x05\x00\x00\x00", 5); /* mov $5, %ebx */
    memcpy(code + 5, bytes, (size_t)size);
    memcpy(code + 5 + size, "\x89\xd8\xc3", 3); /* mov %ebx, %eax; ret */
    skipped = 0;
    if (sigsetjmp(back, 1) == 0)
        ((int (*)(void))code)();
    skipped = size;
    int result;
    __asm__ volatile("call *%1" : "=a"(result) : "r"(code) : "rbx", "rcx", "rdx", "memory", "cc");
    note("  result", result);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 3; i++) {
        run("\x0f\x0b", 2);                     /* ud2 */
        run("\x0f\xb9\xc0", 3);                 /* ud1 */
        run("\xf4", 1);                         /* hlt */
        run("\x8b\x04\x25\x08\x00\x00\x00", 7); /* mov 8, %eax */
    }
    return 0;
}
