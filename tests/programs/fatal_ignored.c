/* what: a fault whose signal the program ignores ends it all the same
 * build: -O1
 * status: SIGSEGV
 */
#include <signal.h>
#include <stdio.h>

int main(void)
{
    signal(SIGSEGV, SIG_IGN);
    raise(SIGSEGV);
    puts("sent: ignored");
    fflush(stdout);
    *(volatile int *)8 = 1;
    puts("not here");
    return 0;
}
