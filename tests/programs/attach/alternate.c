/* what: computes inside a handler on an alternate stack until SIGTERM; then its own handler for SIGTRAP still works
 * build: -O1
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static char stack[1 << 16];
static volatile sig_atomic_t is_over, traps;
static volatile uint64_t sum;

static void end(int number)
{
    (void)number;
    is_over = 1;
}

static void trap(int number)
{
    (void)number;
    traps++;
}

/* All that is on the stack must be what it was in the end: nothing else may be put there meanwhile. */
static void work(int number)
{
    volatile uint64_t own[64];
    (void)number;
    for (int i = 0; i < 64; i++)
        own[i] = 3 * i;
    puts("ready");
    fflush(stdout);
    while (!is_over)
        for (int i = 0; i < 1000; i++)
            sum += i;
    for (int i = 0; i < 64; i++)
        sum += own[i] == 3u * i ? 0 : 1;
}

int main(void)
{
    stack_t alternate;
    struct sigaction action;
    memset(&alternate, 0, sizeof alternate);
    memset(&action, 0, sizeof action);
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, NULL);
    action.sa_handler = work;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    signal(SIGTERM, end);
    signal(SIGTRAP, trap);
    raise(SIGUSR1);
    raise(SIGTRAP);
    puts(traps == 1 && sum % (999 * 500) == 0 ? "good" : "bad");
    return 0;
}
