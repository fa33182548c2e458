/* what: a restartable sequence with another signature than the kernel was told ends the process where it would be aborted
 * build: -O1
 * status: SIGSEGV
 */
#include "rseq_note.h"

int main(void)
{
    struct rseq *area = rseq_area();
    puts("before");
    fflush(stdout);
    __asm__ volatile goto(RSEQ_TABLE RSEQ_ANNOUNCE("%[area]") "1: jmp 1b\n 2:\n"
                          ".pushsection .text.unlikely\n .long 0x12345678\n 4: jmp %l[aborted]\n .popsection\n"
                          :
                          : [area] "r"(area)
                          : "rax", "memory", "cc"
                          : aborted);
aborted:
    puts("aborted");
    return 0;
}
