/* The calling thread's struct rseq, as the C library registered it; and the start of a sequence. */
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/rseq.h>

static inline struct rseq *rseq_area(void)
{
    if (__rseq_size == 0) {
        puts("no rseq");
        exit(0);
    }
    return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

/* Label 3 is the descriptor, from 1 up to 2 it goes, 4 is where it is aborted to. */
#define RSEQ_TABLE                                                                                                     \
    ".pushsection __rseq_cs, \"aw\"\n .balign 32\n 3: .long 0, 0\n .quad 1f, 2f - 1f, 4f\n .popsection\n"
/* Names it, and announces what was named; offset 8 is rseq_cs. */
#define RSEQ_NAME "lea 3b(%%rip), %%rax\n"
#define RSEQ_ANNOUNCE_NAMED(area) "movq %%rax, 8(" area ")\n"
#define RSEQ_ANNOUNCE(area) RSEQ_NAME RSEQ_ANNOUNCE_NAMED(area)
/* Out of line, behind the signature. */
#define RSEQ_ABORT(to)                                                                                                 \
    ".pushsection .text.unlikely\n .byte 0x0f, 0xb9, 0x3d\n .long 0x53053053\n 4: jmp " to "\n .popsection\n"
