/* what: one thread computes until SIGTERM, then says whether all it did was right; also in a chain of calls
 * build: -O1
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

static volatile sig_atomic_t is_over;

static void end(int signal)
{
    (void)signal;
    is_over = 1;
}

__attribute__((noinline)) static uint64_t step(uint64_t value, int depth)
{
    if (depth == 0)
        return value * 6364136223846793005u + 1442695040888963407u;
    return step(value, depth - 1) + 1;
}

int main(void)
{
    uint64_t value = 1, again = 1, n = 0;
    signal(SIGTERM, end);
    puts("ready");
    fflush(stdout);
    while (!is_over) {
        for (int i = 0; i < 10000; i++)
            value = step(value, i & 7);
        n++;
    }
    for (uint64_t k = 0; k < n; k++)
        for (int i = 0; i < 10000; i++)
            again = again * 6364136223846793005u + 1442695040888963407u + (i & 7);
    puts(value == again ? "good" : "bad");
    return value != again;
}
