/* what: a fault inside the handler of the same fault, which is blocked there: ends the program
 * build: -O1
 * status: SIGSEGV
 * traits: oracle
 */
#include <signal.h>
#include "note.h"
static void handler(int number)
{
    note("handler", number);
    __asm__ volatile("movl $1, 8");
}
int main(void)
{
    signal(SIGSEGV, handler);
    __asm__ volatile("movl $1, 0");
    return 0;
}
