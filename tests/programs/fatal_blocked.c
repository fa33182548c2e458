/* what: a fault whose signal is blocked ends the program, though it has a handler
 * build: -O1
 * status: SIGFPE
 */
#include <signal.h>
#include <stdio.h>

static void handler(int number)
{
    (void)number;
    puts("not here");
}

int main(void)
{
    sigset_t set;
    signal(SIGFPE, handler);
    sigemptyset(&set);
    sigaddset(&set, SIGFPE);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGFPE);
    puts("sent: waits");
    fflush(stdout);
    volatile int zero = 0;
    return 5 / zero;
}
