/* what: probes of the kernel (uprobes) on the program's own code: hit at instructions of every kind, and taken away again
 * build: -O1
 * needs: probes
 */
#define _GNU_SOURCE
#include "note.h"
#include "probe.h"

enum { TURNS = 40 };

/* Each is probed before it runs for the first time: what the kernel does itself, and what it executes elsewhere. */
long pushes(long value), adds(long value), relative(long value), jumps(long value), calls(long value), returns(long value);
long nothing(long value), compares(long value), middle(long value);
extern char in_middle[];
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
    return 0;
}
