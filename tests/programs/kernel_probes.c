/* what: probes of the kernel (uprobes) on the program's own code: hit at instructions of every kind, and taken away again
 * build: -O1
 * needs: probes
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>
#include "note.h"
#include "probe.h"

enum { TURNS = 40 };

/* Each is probed before it runs for the first time: what the kernel does itself, and what it executes elsewhere. */
long pushes(long value), adds(long value), relative(long value), jumps(long value), calls(long value), returns(long value);
long nothing(long value), compares(long value), middle(long value);
long stores(long value), adds_there(long value), exchanges(long value), copies(long value), sums_vector(long value);
long moves_vector(long value), faults(long value);
extern char in_middle[], in_sum[], in_move[], in_copy[], in_fault[];
long cell[2];
__asm__(".globl pushes\n"
        "pushes: push %rbp\n"
        "lea 3(%rdi), %rax\n"
        "pop %rbp\n"
        "ret\n"
        "adds: add $9, %rdi\n"
        "mov %rdi, %rax\n"
        "ret\n"
        "relative: mov number(%rip), %rax\n"
        "add %rdi, %rax\n"
        "ret\n"
        "jumps: jmp 1f\n"
        "ud2\n"
        "1: lea 1(%rdi), %rax\n"
        "ret\n"
        "calls: call adds\n"
        "ret\n"
        "returns: ret\n"
        "nothing: nopl 8(%rax,%rax)\n"
        "mov %rdi, %rax\n"
        "ret\n"
        "compares: cmp $7, %rdi\n"
        "setg %al\n"
        "movzx %al, %eax\n"
        "ret\n"
        "middle: lea (%rdi,%rdi), %rax\n"
        "test $1, %dil\n"
        "in_middle: je 2f\n"
        "inc %rax\n"
        "2: ret\n"
        /* Executed twice these would not be as once. */
        "stores: mov %rdi, cell(%rip)\n"
        "mov cell(%rip), %rax\n"
        "ret\n"
        "adds_there: add %rdi, cell(%rip)\n"
        "mov cell(%rip), %rax\n"
        "ret\n"
        "exchanges: xadd %rdi, cell(%rip)\n"
        "lea (%rdi,%rdi), %rax\n"
        "ret\n"
        "copies: mov %rdi, cell(%rip)\n"
        "lea cell(%rip), %rsi\n"
        "lea 8(%rsi), %rdi\n"
        "in_copy: movsq\n"
        "mov -8(%rdi), %rax\n"
        "sub %rsi, %rdi\n"
        "add %rdi, %rax\n"
        "ret\n"
        "sums_vector: cvtsi2sd %rdi, %xmm7\n"
        "in_sum: addsd %xmm7, %xmm7\n"
        "cvttsd2si %xmm7, %rax\n"
        "ret\n"
        "moves_vector: movq %rdi, %xmm3\n"
        "in_move: movdqu %xmm3, cell(%rip)\n"
        "mov cell(%rip), %rax\n"
        "inc %rax\n"
        "ret\n"
        "faults: mov $16, %eax\n"
        "in_fault: mov %rdi, (%rax)\n"
        "ret\n"
        ".section .rodata\n"
        "number: .quad 1000\n"
        ".text\n");

static void probe(const char *name, const void *place, long (*function)(long))
{
    long sum = 0;
    int event = set_probe(place, 0);
    for (int i = 0; i < TURNS; i++)
        sum += function(i);
    note(name, sum);
    note("hits", hits_of(event));
    close(event);
    for (int i = 0; i < TURNS; i++)
        sum += function(i);
    note("after", sum);
}

static sigjmp_buf before_fault;
static volatile long fault_place;

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    fault_place = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    siglongjmp(before_fault, 1);
}

static long fault_and_say(long value)
{
    if (sigsetjmp(before_fault, 1) == 0)
        faults(value);
    return fault_place == (long)in_fault;
}

int main(void)
{
    if (kind_of_probes() < 0)
        return 1;
    probe("push", pushes, pushes);
    probe("add", adds, adds);
    probe("relative", relative, relative);
    probe("jump", jumps, jumps);
    probe("call", calls, calls);
    probe("return", returns, returns);
    probe("nothing", nothing, nothing);
    probe("flags", compares, compares);
    probe("middle", in_middle, middle);
    probe("store", stores, stores);
    probe("add there", adds_there, adds_there);
    probe("exchange", exchanges, exchanges);
    probe("copy", in_copy, copies);
    probe("vector", in_sum, sums_vector);
    probe("vector store", in_move, moves_vector);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    probe("fault", in_fault, fault_and_say);
    return 0;
}
