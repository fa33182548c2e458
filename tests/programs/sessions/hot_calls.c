/* A function that becomes hot, in front of whose first block something is captured; called and fallen into.
 *
 * Argument: how many calls.
 */
#include <stdlib.h>

static volatile long sum;

__attribute__((noinline)) long hot(long number)
{
    long total = 0;
    for (long turn = 0; turn < number % 8; turn++)
        total += turn ^ number;
    return total;
}

int main(int argc, char **argv)
{
    (void)argc;
    long n_calls = atol(argv[1]);
    for (long number = 0; number < n_calls; number++)
        sum += hot(number);
    return 0;
}
