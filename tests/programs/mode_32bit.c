/* what: 32-bit code in a 64-bit program: entered by far jump, far return and iretq, left by far jump, return and iret; faults, signals, pushed flags there
 * build: -O1 -fno-stack-protector -fno-pie -no-pie
 * lost: uncounted_instructions
 * traits: addresses
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include "note.h"

#define CODE ((unsigned char *)0x10000000)
#define STACK ((unsigned char *)0x11000000)
#define STACK_BYTES 65536

enum way { BY_JUMP, BY_RETURN, BY_IRETQ };

/* Calls 32-bit code at `address` with a stack of its own; it comes back with its result in eax to `back`, in 64-bit code, which
 * is also what is on top of its stack, as a far address. */
uint64_t call32(uint64_t address, enum way way);
__asm__(".text\n.globl call32\n.type call32, @function\n"
        "call32: push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
        " mov %rsp, saved(%rip)\n mov $0x1100ff00, %esp\n mov $0x2b, %eax\n mov %eax, %ds\n mov %eax, %es\n"
        " movl $0x33, 4(%rsp)\n movl $back, (%rsp)\n mov $0x123456789abcdef0, %r12\n"
        " cmp $1, %esi\n je 1f\n cmp $2, %esi\n je 2f\n"
        " mov %edi, pointer(%rip)\n movw $0x23, pointer+4(%rip)\n ljmp *pointer(%rip)\n"
        "1: pushq $0x23\n push %rdi\n lretq\n"
        "2: mov %rsp, %rax\n pushq $0x2b\n push %rax\n pushfq\n pushq $0x23\n push %rdi\n iretq\n"
        "back: mov saved(%rip), %rsp\n mov %eax, %eax\n"
        " mov $0x123456789abcdef0, %rcx\n cmp %rcx, %r12\n je 3f\n or $1 << 31, %eax\n"
        "3: cld\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n"
        ".data\nsaved: .quad 0\npointer: .space 8\n.text\n");

/* mov eax, 41; inc eax (a prefix in 64-bit code) */
#define ANSWER "\xb8\x29\0\0\0\x40"
/* retf */
#define FAR_RETURN "\xcb"

static void put(const char *code, size_t size) { memcpy(CODE, code, size); }
#define PUT(code) put(code, sizeof(code) - 1)

static const char *const ways[] = {"jump", "far return", "iretq"};

static void go(const char *what)
{
    for (int way = 0; way < 3; way++)
        printf("%s, by %s: %lx\n", what, ways[way], call32((uintptr_t)CODE, (enum way)way));
    fflush(stdout);
}

static volatile sig_atomic_t n_faults, n_ticks;
static int skipped;
static sigjmp_buf gone;

static void on_fault(int number, siginfo_t *info, void *opaque)
{
    (void)info;
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("  cs", registers[REG_CSGSFS] & 0xffff);
    note("  ss", registers[REG_CSGSFS] >> 48 & 0xffff);
    note("  strict", ((ucontext_t *)opaque)->uc_flags >> 2 & 1);
    note("  at", registers[REG_RIP] - (greg_t)(uintptr_t)CODE);
    note("  eax", registers[REG_RAX]);
    registers[REG_RIP] += skipped;
    n_faults++;
}

static void on_fault_leave(int number)
{
    note("left by a jump", number);
    siglongjmp(gone, 1);
}

static void on_tick(int number, siginfo_t *info, void *opaque)
{
    (void)number, (void)info;
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    if ((registers[REG_CSGSFS] & 0xffff) == 0x23) {
        registers[REG_RBX] = 1; /* ends the loop */
        n_ticks++;
    }
}

int main(void)
{
    mmap(CODE, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    mmap(STACK, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    static char stack[65536];
    sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);

    PUT(ANSWER FAR_RETURN);
    go("far return");
    /* push flags, cs and eip; iretd: pop ecx; pop edx; pushfd; push edx; push ecx; iretd */
    PUT(ANSWER "\x59\x5a\x9c\x52\x51\xcf");
    go("iretd");
    /* jmp far [esp] */
    PUT(ANSWER "\xff\x2c\x24");
    go("far jump");
    /* pushfd; pop eax; and eax, 0x100: no trap flag is seen */
    PUT("\x9c\x58\x25\0\x01\0\0" FAR_RETURN);
    go("trap flag");
    /* stc; pushfd; clc; popfd; sbb eax, eax */
    PUT("\xf9\x9c\xf8\x9d\x19\xc0" FAR_RETURN);
    go("flags");
    /* mov ecx, 100; xor eax, eax; add eax, ecx; loop */
    PUT("\xb9\x64\0\0\0\x31\xc0\x01\xc8\xe2\xfc" FAR_RETURN);
    go("loop");
    /* cld; mov edi, stack; mov ecx, 64; mov al, 7; rep stosb; movzx eax, byte [edi - 1] */
    PUT("\xfc\xbf\0\0\0\x11\xb9\x40\0\0\0\xb0\x07\xf3\xaa\x0f\xb6\x47\xff" FAR_RETURN);
    go("string");
    /* call the next but one instruction; it returns */
    PUT("\xe8\x01\0\0\0" FAR_RETURN ANSWER "\xc3");
    go("call");
    /* mov ax, gs; movzx eax, ax */
    PUT("\x8c\xe8\x0f\xb7\xc0" FAR_RETURN);
    go("gs");

    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGILL, &action, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGTRAP, &action, NULL);
    skipped = 2;
    PUT(ANSWER "\x0f\x0b" FAR_RETURN);
    go("undefined");
    skipped = 0;
    PUT(ANSWER "\xcc" FAR_RETURN);
    go("breakpoint");
    skipped = 2;
    PUT("\x31\xc0\x8b\0" FAR_RETURN); /* mov eax, [eax] at address 0 */
    go("read");
    skipped = 0;
    /* mov eax, 1; pushfd; or dword [esp], 0x100; popfd; inc eax; inc eax; pushfd; and dword [esp], ~0x100; popfd; inc eax */
    PUT("\xb8\x01\0\0\0\x9c\x81\x0c\x24\0\1\0\0\x9d\x40\x40\x9c\x81\x24\x24\xff\xfe\xff\xff\x9d\x40" FAR_RETURN);
    go("steps");
    printf("faults %d\n", (int)n_faults);
    signal(SIGILL, on_fault_leave);
    PUT(ANSWER "\x0f\x0b");
    if (sigsetjmp(gone, 1) == 0)
        call32((uintptr_t)CODE, BY_JUMP);
    PUT(ANSWER FAR_RETURN);
    go("after it");

    action.sa_sigaction = on_tick;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval fast = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &fast, NULL);
    /* xor ebx, ebx; test ebx, ebx; jz back; mov eax, ebx */
    PUT("\x31\xdb\x85\xdb\x74\xfc\x89\xd8" FAR_RETURN);
    go("until a signal");
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    printf("enough ticks %d\n", n_ticks >= 3);
    return 0;
}
