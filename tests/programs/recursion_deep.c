/* what: recursion 100,000 frames deep, ten times: far more calls than any table of return addresses holds
 * build: -O1 -fno-inline -fno-optimize-sibling-calls
 */
#include <stdio.h>

static unsigned long even(unsigned long n);
static unsigned long odd(unsigned long n) { return n == 0 ? 0 : 1 + even(n - 1); }
static unsigned long even(unsigned long n) { return n == 0 ? 0 : 2 + odd(n - 1); }

int main(void)
{
    unsigned long sum = 0;
    for (int i = 0; i < 10; i++)
        sum = sum * 3 + even(100000);
    printf("%lu\n", sum);
    return 0;
}
