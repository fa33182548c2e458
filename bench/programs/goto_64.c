/* An interpreter of computed gotos with 64 operations, each with its own indirect jump: most sites have many targets. */
#include <stdio.h>
#include <stdlib.h>

#define EIGHT(OF, n) OF(n##0) OF(n##1) OF(n##2) OF(n##3) OF(n##4) OF(n##5) OF(n##6) OF(n##7)
#define ALL(OF) \
    EIGHT(OF, 0) EIGHT(OF, 1) EIGHT(OF, 2) EIGHT(OF, 3) EIGHT(OF, 4) EIGHT(OF, 5) EIGHT(OF, 6) EIGHT(OF, 7)

int main(int argc, char **argv)
{
#define ADDRESS(n) &&l##n,
    static void *const labels[] = {ALL(ADDRESS)};
    static unsigned char code[4096];
    unsigned long left = argc > 1 ? strtoul(argv[1], NULL, 10) : 400000000;
    unsigned seed = 1, a = 1, b = 2, at = 0;
    for (unsigned i = 0; i < sizeof code; i++)
        code[i] = (unsigned char)((seed = seed * 1103515245 + 12345) >> 16 & 63);
#define NEXT                                                                                                           \
    if (--left == 0) goto done;                                                                                        \
    at = (at + 1) & (sizeof code - 1);                                                                                 \
    goto *labels[code[at]]
    NEXT;
    /* The operation's number makes its work a little different from the others'. */
#define OPERATION(n) \
l##n: \
    a = (a ^ 0##n) + b * (0##n | 1); \
    b += at ^ 0##n; \
    NEXT;
    ALL(OPERATION)
done:
    printf("%u %u\n", a, b);
    return 0;
}
