/* what: probes of the kernel (uprobes) on the program's own code: hit at instructions of every kind, and taken away again
 * build: -O1
 * needs: probes
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include "note.h"

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

static int kind;

/* Where a place lies in the file: its mapping says so. */
static uint64_t offset_in_file(const void *place)
{
    char line[512];
    uint64_t offset = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end, from;
        if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &from) == 3 && start <= (uintptr_t)place && (uintptr_t)place < end)
            offset = (uintptr_t)place - start + from;
    }
    fclose(maps);
    return offset;
}

static int set(const void *place)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = (unsigned)kind;
    attr.uprobe_path = (uintptr_t)"/proc/self/exe";
    attr.probe_offset = offset_in_file(place);
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static void probe(const char *name, const void *place, long (*function)(long))
{
    uint64_t hits = 0;
    long sum = 0;
    int event = set(place);
    for (int i = 0; i < TURNS; i++)
        sum += function(i);
    note(name, sum);
    note("hits", read(event, &hits, sizeof hits) == sizeof hits ? (long)hits : -1);
    close(event);
    for (int i = 0; i < TURNS; i++)
        sum += function(i);
    note("after", sum);
}

int main(void)
{
    FILE *type = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
    if (type == NULL || fscanf(type, "%d", &kind) != 1)
        return 1;
    fclose(type);
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
