/* what: large stack frames, alloca, variable arrays, and a stack that grows by megabytes
 * build: -O1 -fno-inline -fstack-clash-protection
 * traits: oracle
 */
#include <alloca.h>
#include <stdio.h>
#include <string.h>

static unsigned big(unsigned n)
{
    char frame[200000];
    memset(frame, (int)n, sizeof frame);
    return n == 0 ? (unsigned)frame[5] : big(n - 1) + (unsigned)frame[n * 7];
}

static unsigned grow(unsigned n)
{
    char *area = alloca(n * 100 + 1);
    char array[n + 1];
    memset(area, 1, n * 100 + 1);
    memset(array, 2, n + 1);
    return (unsigned)area[n * 100] + (unsigned)array[n];
}

int main(void)
{
    unsigned sum = big(30);
    for (unsigned i = 0; i < 200; i++)
        sum += grow(i);
    printf("%u\n", sum);
    return 0;
}
