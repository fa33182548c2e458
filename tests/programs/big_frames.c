/* what: large stack frames, alloca, variable arrays, and a stack that grows by megabytes
 * build: -O1 -fno-inline -fstack-clash-protection -static
 * traits: oracle
 */
#include <alloca.h>
#include <stdio.h>
#include <string.h>

static unsigned big(unsigned n)
{
    char frame[200000];
    for (unsigned i = 0; i < sizeof frame; i += 4000)
        frame[i] = (char)n;
    return n == 0 ? (unsigned)frame[0] : big(n - 1) + (unsigned)frame[n * 4000];
}

static unsigned grow(unsigned n)
{
    char *area = alloca(n * 10 + 1);
    char array[n + 1];
    memset(area, 1, n * 10 + 1);
    memset(array, 2, n + 1);
    return (unsigned)area[n * 10] + (unsigned)array[n];
}

int main(void)
{
    unsigned sum = big(30);
    for (unsigned i = 0; i < 100; i++)
        sum += grow(i);
    printf("%u\n", sum);
    return 0;
}
