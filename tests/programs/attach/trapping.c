/* what: a SIGTRAP waits, blocked, while it computes; it comes once SIGTERM says so
 * build: -O1
 */
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t is_over, n_traps;

static void end(int signal)
{
    (void)signal;
    is_over = 1;
}

static void trap(int signal)
{
    (void)signal;
    n_traps++;
}

int main(void)
{
    sigset_t mask;
    unsigned long value = 1;
    signal(SIGTERM, end);
    signal(SIGTRAP, trap);
    sigemptyset(&mask);
    sigaddset(&mask, SIGTRAP);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    raise(SIGTRAP);
    puts("ready");
    fflush(stdout);
    while (!is_over)
        value = value * 3 + 1;
    int is_early = n_traps != 0;
    sigprocmask(SIG_UNBLOCK, &mask, NULL);
    puts(value && !is_early && n_traps == 1 ? "good" : "bad");
    return is_early || n_traps != 1;
}
