/* what: setjmp and longjmp: over many frames, back into a loop, with changed values, sigsetjmp with masks, and deep again afterwards
 * build: -O1 -fno-inline -static
 * traits: oracle
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static jmp_buf buffer;
static sigjmp_buf signal_buffer;

static int dive(int depth, int value)
{
    if (depth == 0)
        longjmp(buffer, value);
    return dive(depth - 1, value) + 1;
}

static int sink(int depth) { return depth == 0 ? 0 : sink(depth - 1) + 1; }

int main(void)
{
    volatile int rounds = 0;
    int got = setjmp(buffer);
    printf("came with %d\n", got);
    rounds++;
    if (rounds < 8)
        dive(rounds * 5, rounds * 10);
    printf("%d\n", sink(200));
    for (volatile int i = 0; i < 300; i++) {
        if (setjmp(buffer) == 0)
            dive(i % 7, 0);              /* arrives as 1 */
        else
            rounds++;
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (sigsetjmp(signal_buffer, 1) == 0) {
        sigprocmask(SIG_BLOCK, &set, NULL);
        siglongjmp(signal_buffer, 5);
    }
    sigprocmask(SIG_BLOCK, NULL, &set);
    printf("rounds %d, blocked %d\n", rounds, sigismember(&set, SIGUSR1));
    return 0;
}
