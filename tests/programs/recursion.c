/* what: direct recursion: Fibonacci, Ackermann, mutual, and 3,000 frames deep
 * build: -O1 -fno-inline -fno-optimize-sibling-calls -fno-ipa-cp
 * also: static -O2 -static
 * traits: oracle:static
 */
#include <stdio.h>

static unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static unsigned ackermann(unsigned m, unsigned n)
{
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
static int is_odd(unsigned n);
static int is_even(unsigned n) { return n == 0 ? 1 : is_odd(n - 1); }
static int is_odd(unsigned n) { return n == 0 ? 0 : is_even(n - 1); }
static unsigned long depth(unsigned long n) { return n == 0 ? 0 : 1 + depth(n - 1); }

int main(void)
{
    printf("%u %u %d %lu\n", fib(14), ackermann(2, 5), is_even(301), depth(3000));
    return 0;
}
