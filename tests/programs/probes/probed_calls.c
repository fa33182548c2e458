/* Calls of a function with known arguments and results, a string, a word in memory, and recursion; what it prints is what
   events must say. With an argument it waits for input before. */
#include <stdio.h>
#include <stdlib.h>

volatile int counter = 40;
const char *volatile text = "a \"quoted\" text";

__attribute__((noinline)) long add(long a, long b)
{
    counter++;
    return a * 3 + b;
}

__attribute__((noinline)) long descend(long n)
{
    return n == 0 ? 0 : n + descend(n - 1);
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count > 1) {
        puts("ready");
        fflush(stdout);
        getchar();
    }
    for (long n = 0; n < 5; n++)
        printf("%ld %d\n", add(n, 7), counter);
    printf("%ld\n", descend(6));
    return 3;
}
