/* what: a function that calls itself in a loop, which is entered in the middle of a block: one call in two pieces of code
 * build: -O2 -static
 * traits: oracle
 */
#include <stdio.h>

/* Fibonacci numbers as compilers make them of two calls: the second one has become a jump back to the first. */
__attribute__((noipa)) static unsigned long fib(unsigned long n)
{
    unsigned long sum = 0;
    while (n >= 2) {
        sum += fib(n - 1);
        n -= 2;
    }
    return sum + n;
}

int main(void)
{
    printf("%lu\n", fib(14));
    return 0;
}
