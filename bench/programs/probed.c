/* Calls a small function many times. Argument: how many. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) long probed(long a, long b)
{
    __asm__ volatile("");
    return a * b;
}

int main(int argc, char **argv)
{
    (void)argc;
    long n = atol(argv[1]), sum = 0;
    for (long i = 0; i < n; i++)
        sum += probed(i, i + 1);
    printf("%ld\n", sum);
}
