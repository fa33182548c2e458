/* Fibonacci numbers as compilers turn the recursion into a loop: the second call has become a jump back to the first. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline, noclone)) static long fib(long n)
{
    long sum = 0;
    while (n >= 2) {
        sum += fib(n - 1);
        n -= 2;
    }
    return sum + n;
}

int main(int argc, char **argv)
{
    printf("%ld\n", fib(argc > 1 ? strtol(argv[1], NULL, 10) : 42));
    return 0;
}
