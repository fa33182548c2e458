/* what: an instruction of a restartable sequence that faults ends the process
 * build: -O1
 * status: SIGSEGV
 */
#include "rseq_note.h"

int main(void)
{
    struct rseq *area = rseq_area();
    puts("before");
    fflush(stdout);
    __asm__ volatile goto(RSEQ_TABLE RSEQ_ANNOUNCE("%[area]") "1: mov (0x10), %%rax\n 2:\n" RSEQ_ABORT("%l[aborted]")
                          :
                          : [area] "r"(area)
                          : "rax", "memory", "cc"
                          : aborted);
    puts("behind");
    return 0;
aborted:
    puts("aborted");
    return 0;
}
