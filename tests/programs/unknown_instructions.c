/* what: instructions that the processor refuses, among them ones that are too long or new: signal, code, address, error
 * build: -O1
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/* What is not refused comes to the return behind it. */
static const struct {
    const char *code;
    unsigned long size;
} cases[] = {
    {"\x06", 1},
    {"\xd6", 1},
    {"\x0f\x04", 2},
    {"\x0f\x0a", 2},
    {"\x0f\x0b", 2},
    {"\x0f\xb9\xc0", 3},
    {"\x0f\xff\xc0", 3},
    {"\x0f\x38\x3f", 3},
    {"\xf0\x90", 2},
    {"\xc4\xe2\x7b\x00\xc0", 5},
    {"\x62\xf1\x7c\x48\x00\xc0", 6},
    {"\x8f\xe8\x00", 3},
    {"\xd5\x00\x90", 3},
    {"\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90", 16},
};

static void skip(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    unsigned char *pc = (unsigned char *)registers[REG_RIP];
    printf(" signal %d code %d, address %s, trap %lld error %lld, in front of %02x", number, info->si_code,
           info->si_addr == pc ? "of it" : "another", registers[REG_TRAPNO], registers[REG_ERR], *pc);
    registers[REG_RIP] = *(greg_t *)registers[REG_RSP];
    registers[REG_RSP] += 8;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = skip, .sa_flags = SA_SIGINFO};
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGILL, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    for (int is_writable = 0; is_writable < 2; is_writable++) {
        for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
            mprotect(code, 4096, PROT_READ | PROT_WRITE);
            memset(code, 0x90, 64);
            memcpy(code, cases[i].code, cases[i].size);
            code[63] = 0xc3;
            mprotect(code, 4096, PROT_READ | PROT_EXEC | (is_writable ? PROT_WRITE : 0));
            printf("%u:", i);
            ((void (*)(void))code)();
            puts("");
        }
    }
    return 0;
}
