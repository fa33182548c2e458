/* what: restartable sequences as libc registers them: the area is filled in, sched_getcpu answers, a critical section runs
 * build: -O1
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/rseq.h>

int main(void)
{
    if (__rseq_size == 0) {
        puts("no rseq");
        return 0;
    }
    struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
    int right = 0, committed = 0;
    for (int i = 0; i < 1000; i++)
        right += sched_getcpu() >= 0 && area->cpu_id < 4096;
    long cell = 0;
    for (int i = 0; i < 2000; i++) {
        /* Commits by one store; aborted and retried when preempted. */
        __asm__ volatile goto(
            ".pushsection __rseq_cs, \"aw\"\n .balign 32\n"
            "3: .long 0, 0\n .quad 1f, 2f - 1f, 4f\n .popsection\n"
            "5: lea 3b(%%rip), %%rax\n movq %%rax, %c[cs](%[area])\n"
            "1: movq (%[cell]), %%rax\n inc %%rax\n movq %%rax, (%[cell])\n"
            "2:\n"
            ".pushsection .text.unlikely\n .long 0x53053053\n 4: jmp 5b\n .popsection\n"
            :
            : [area] "r"(area), [cell] "r"(&cell), [cs] "i"(__builtin_offsetof(struct rseq, rseq_cs))
            : "rax", "memory", "cc"
            : out);
        committed++;
    out:;
    }
    printf("%d %d %ld\n", right, committed, cell);
    return 0;
}
