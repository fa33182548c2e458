/* what: a write to address zero ends the program
 * build: -O1
 * status: SIGSEGV
 * traits: oracle
 */
#include "note.h"
int main(void)
{
    note("before", 1);
    __asm__ volatile("movl $1, 0");
    return 0;
}
