/* what: restartable sequences of odd shapes: calls, indirect jumps, system calls, one instruction, faults; not announced at all
 * build: -O1
 * also: nopie -O1 -no-pie
 */
#define _GNU_SOURCE
#include "rseq_note.h"
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

/* What each sequence starts with, by the C compiler's convention: rdi is the area, rsi a cell; returns 1 where it was
 * committed, 0 where it was aborted. An abort finds the stack and rbx as the sequence had them: it puts them back. */
#define SEQUENCE(name, body)                                                                                           \
    __attribute__((naked, noinline)) static long name(struct rseq *area, long *cell)                                   \
    {                                                                                                                  \
        (void)area, (void)cell;                                                                                        \
        __asm__(RSEQ_TABLE "mov %rsp, %r8\n mov %rbx, %r9\n lea 3b(%rip), %rax\n mov %rax, 8(%rdi)\n" body               \
                           "mov $1, %eax\n ret\n .long 0x53053053\n"                                                   \
                           "4: mov %r8, %rsp\n mov %r9, %rbx\n xor %eax, %eax\n ret\n");                              \
    }

static volatile long flag;

__attribute__((used)) static long three(void)
{
    return 3;
}

SEQUENCE(one_instruction, "1: incq (%rsi)\n 2:")
SEQUENCE(to_static_memory, "1: mov $77, %eax\n mov %rax, flag(%rip)\n 2:")
SEQUENCE(ends_with_jump, "1: incq (%rsi)\n cmpq $0, (%rsi)\n jne 5f\n 2: ud2\n 5:")
SEQUENCE(ends_with_taken_jump, "1: incq (%rsi)\n jmp 5f\n 2: ud2\n 5:")
SEQUENCE(leaves_early, "1: cmpq $100, (%rsi)\n jb 5f\n incq (%rsi)\n 2: jmp 6f\n 5: addq $10, (%rsi)\n 6:")
SEQUENCE(with_call, "push %rbx\n 1: mov %rsi, %rbx\n call three\n add %rax, (%rbx)\n 2: pop %rbx\n")
SEQUENCE(with_indirect_jump, "lea 5f(%rip), %rdx\n push %rdx\n 1: jmp *%rdx\n ud2\n 5: pop %rcx\n jrcxz 6f\n incq (%rsi)\n 2: 6:")
SEQUENCE(with_push_and_return, "1: lea 5f(%rip), %rdx\n push %rdx\n ret\n ud2\n 5: incq (%rsi)\n 2:")
SEQUENCE(with_switch, "1: mov $3, %ecx\n 5: dec %ecx\n jz 6f\n cmp $1, %ecx\n je 7f\n addq $100, (%rsi)\n jmp 5b\n"
                      "7: addq $10, (%rsi)\n jmp 5b\n 6: incq (%rsi)\n 2:")
/* Its table is not named in the code. */
SEQUENCE(announced_by_table, "push %rcx\n mov tables(%rip), %rcx\n mov %rcx, 8(%rdi)\n 1: incq (%rsi)\n 5: cmpq $5, (%rsi)\n"
                             "jb 6f\n incq (%rsi)\n 2: pop %rcx\n jmp 7f\n 6: incq (%rsi)\n jmp 5b\n"
                             ".pushsection .data\n tables: .quad 3b\n .popsection\n 7:")
SEQUENCE(faults, "1: incq (%rsi)\n mov (0x10), %rax\n 2:")
SEQUENCE(executes_ud2, "1: incq (%rsi)\n .globl rseq_ud2\n rseq_ud2: ud2\n 2:")
SEQUENCE(divides, "1: xor %ecx, %ecx\n .globl rseq_divide\n rseq_divide: div %ecx\n 2:")
SEQUENCE(breaks, "1: incq (%rsi)\n int3\n 2:")
SEQUENCE(spins, "1: cmpq $0, (%rsi)\n je 1b\n incq (%rsi)\n 2:")
SEQUENCE(spins_in_one_block, "1: nop\n jmp 1b\n 2:")
SEQUENCE(spins_in_jumps, "lea 1f(%rip), %rdx\n 1: jmp *%rdx\n 2:")
/* A thread that is interrupted at its first jump is not aborted, for the kernel takes the announcement back there: the end
 * of the loop is for that. */
SEQUENCE(entered_in_its_middle, "jmp 5f\n 1: ud2\n 5: incq (%rsi)\n cmpq $0, flag(%rip)\n je 5b\n cmpq $50000000, (%rsi)\n"
                                "jb 5b\n 2:")

/* One piece of code, two descriptors: it returns 1 or 2, by where it was aborted to. */
__attribute__((naked, noinline)) static long described_twice(struct rseq *area, long second)
{
    (void)area, (void)second;
    __asm__(".pushsection __rseq_cs, \"aw\"\n .balign 32\n 3: .long 0, 0\n .quad 1f, 2f - 1f, 4f\n"
            "5: .long 0, 0\n .quad 1f, 2f - 1f, 6f\n .popsection\n"
            "lea 3b(%rip), %rax\n test %rsi, %rsi\n jz 7f\n lea 5b(%rip), %rax\n 7: mov %rax, 8(%rdi)\n"
            "1: inc %rcx\n jmp 1b\n 2: ud2\n"
            ".long 0x53053053\n 4: mov $1, %eax\n ret\n"
            ".long 0x53053053\n 6: mov $2, %eax\n ret\n");
}

/* It takes the announcement back itself, so nothing aborts it any more. */
SEQUENCE(takes_back, "1: movq $0, 8(%rdi)\n 5: cmpq $0, flag(%rip)\n je 5b\n incq (%rsi)\n 2:")

static sigjmp_buf out;
static long handled;
static void *abort_address, *fault_address;

extern char rseq_ud2[], rseq_divide[];

static void count(int number, siginfo_t *info, void *context)
{
    ucontext_t *state = context;
    handled++;
    abort_address = (void *)state->uc_mcontext.gregs[REG_RIP];
    fault_address = info->si_addr;
    if (number == SIGALRM)
        flag = 1;
    if (number == SIGUSR1)
        siglongjmp(out, 1);
}

static void set_timer(int microseconds)
{
    struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* Runs it until it is committed; how often it was aborted does not count. */
static void until_done(const char *name, long (*sequence)(struct rseq *, long *), struct rseq *area)
{
    long cell = 0;
    do
        cell = 0;
    while (!sequence(area, &cell));
    printf("%s: %ld\n", name, cell);
}

/* Runs it until a signal aborts it. */
static void until_aborted(const char *name, long (*sequence)(struct rseq *, long *), struct rseq *area)
{
    long cell = 0;
    handled = 0;
    set_timer(500);
    int aborts = 0;
    while (aborts < 5 || handled == 0) {
        cell = 0;
        aborts += !sequence(area, &cell);
    }
    set_timer(0);
    printf("%s: aborted, word %llu\n", name, (unsigned long long)area->rseq_cs);
}

/* It faults, and goes on where it is aborted to. */
static void until_fault(const char *name, long (*sequence)(struct rseq *, long *), struct rseq *area, void *address)
{
    long cell = 0, n = 0;
    handled = 0;
    while (handled == 0)
        n += sequence(area, &cell);
    printf("%s: %ld committed, %ld handled, at %s, word %llu\n", name, n, handled,
           address == NULL ? "?" : fault_address == address ? "the instruction" : "elsewhere",
           (unsigned long long)area->rseq_cs);
    printf("  went on at the %s\n", memcmp(abort_address, "\x4c\x89\xc4", 3) == 0 ? "abort" : "fault");
}

int main(void)
{
    struct rseq *area = rseq_area();
    struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO};
    static const int numbers[] = {SIGALRM, SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGUSR1};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
#define DONE(name) until_done(#name, name, area)
    for (int i = 0; i < 3; i++) {
        DONE(one_instruction);
        DONE(to_static_memory);
        DONE(ends_with_jump);
        DONE(ends_with_taken_jump);
        DONE(leaves_early);
        DONE(with_call);
        DONE(with_indirect_jump);
        DONE(with_push_and_return);
        DONE(with_switch);
        DONE(announced_by_table);
    }
    printf("flag %ld\n", flag);
    until_fault("faults", faults, area, (void *)0x10);
    until_fault("executes_ud2", executes_ud2, area, rseq_ud2);
    until_fault("divides", divides, area, rseq_divide);
    until_fault("breaks", breaks, area, NULL);
    until_aborted("spins", spins, area);
    until_aborted("spins_in_one_block", spins_in_one_block, area);
    until_aborted("spins_in_jumps", spins_in_jumps, area);
    until_aborted("spins", spins, area);

    until_aborted("entered_in_its_middle", entered_in_its_middle, area);
    /* Often enough for signals between the announcement and the start. */
    set_timer(40);
    long elsewhere = 0;
    for (int i = 0; i < 1000; i++)
        elsewhere += described_twice(area, i / 2 % 2) != 1 + i / 2 % 2;
    set_timer(0);
    printf("described twice: %ld aborted elsewhere\n", elsewhere);

    flag = 0;
    set_timer(500);
    long cell = 0;
    while (!takes_back(area, &cell))
        cell = 0;
    set_timer(0);
    printf("takes_back: %ld\n", cell);

    /* Without an area it is code like any other. */
    uint32_t signature = 0x53053053;
    printf("unregister: %ld\n", syscall(SYS_rseq, area, sizeof *area, 1, signature));
    printf("again: %ld\n", syscall(SYS_rseq, area, sizeof *area, 1, signature));
    flag = 0;
    set_timer(500);
    cell = 0;
    while (flag == 0)
        with_switch(area, &cell);
    set_timer(0);
    printf("without: %ld\n", cell % 111);
    area->rseq_cs = 0;
    printf("register: %ld\n", syscall(SYS_rseq, area, sizeof *area, 0, signature));
    until_aborted("spins", spins, area);

    if (sigsetjmp(out, 1) == 0) {
        raise(SIGUSR1);
        puts("not here");
    }
    DONE(one_instruction);
    return 0;
}
