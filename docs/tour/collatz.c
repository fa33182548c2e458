/* The program of the tour in README.md: which number below a limit takes the most Collatz steps? */
#include <stdio.h>
#include <stdlib.h>

static unsigned steps(unsigned long n) {
    unsigned count = 0;
    while (n != 1) {
        if (n & 1)
            n = 3 * n + 1;
        else
            n /= 2;
        count++;
    }
    return count;
}

int main(int argc, char **argv) {
    unsigned long limit = argc > 1 ? strtoul(argv[1], 0, 10) : 1000, best = 1;
    for (unsigned long n = 2; n < limit; n++)
        if (steps(n) > steps(best))
            best = n;
    printf("%lu takes %u steps\n", best, steps(best));
}
