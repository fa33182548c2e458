/* The sieve of Eratosthenes over LIMIT bytes, so many times: loops of one block that store. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIMIT = 1 << 20 };

static unsigned char is_composite[LIMIT];

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000, found = 0;
    while (rounds-- != 0) {
        memset(is_composite, 0, sizeof is_composite);
        for (unsigned long i = 2; i < LIMIT; i++) {
            if (is_composite[i])
                continue;
            found++;
            for (unsigned long j = i * i; j < LIMIT; j += i)
                is_composite[j] = 1;
        }
    }
    printf("%lu\n", found);
    return 0;
}
