/* what: a breakpoint instruction ends the program although SIGTRAP is ignored
 * build: -O1
 * status: SIGTRAP
 */
#include <signal.h>
#include <stdio.h>

int main(void)
{
    signal(SIGTRAP, SIG_IGN);
    raise(SIGTRAP);
    puts("sent: ignored");
    fflush(stdout);
    __asm__ volatile("int3");
    puts("not here");
    return 0;
}
