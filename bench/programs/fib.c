/* Recursion: two calls and returns for each few instructions. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline, noclone)) static unsigned long fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

int main(int argc, char **argv)
{
    printf("%lu\n", fib(argc > 1 ? (unsigned)atoi(argv[1]) : 42));
    return 0;
}
