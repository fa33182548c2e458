/* what: blocks that run thousands of times, but seldom, around a loop that runs all the time: branches, calls and returns of both
 * build: -O1
 */
#include <stdio.h>

static volatile unsigned sink;

__attribute__((noinline)) static unsigned seldom(unsigned i)
{
    if (i % 3 == 0)
        return i ^ 5;
    if (i % 7 == 0)
        sink += i;
    return i + 1;
}

__attribute__((noinline)) static unsigned often(unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) {
        if (sum & 1)
            sum += i;
        sum = sum * 5 + 3;
    }
    return sum;
}

int main(void)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < 5000; i++) {
        sum += often(16000);
        sum ^= seldom(i);
        if (sum & 64)
            sum += seldom(sum);
    }
    printf("%u\n", sum);
    return 0;
}
