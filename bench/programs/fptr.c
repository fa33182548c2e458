/* Calls through a table of 16 function pointers, in an order that depends on the data. */
#include <stdio.h>
#include <stdlib.h>

#define FUNCTION(n) __attribute__((noinline)) static unsigned f##n(unsigned x) { return x * (2 * n + 3) + n; }
#define ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
ALL(FUNCTION)
#define NAME(n) f##n,
static unsigned (*const table[])(unsigned) = {ALL(NAME)};

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000000;
    unsigned x = 1;
    for (unsigned long i = 0; i < rounds; i++)
        x = table[(x >> 9 ^ i) & 15](x);
    printf("%u\n", x);
    return 0;
}
