/* An interpreter of computed gotos: 16 operations, each with its own indirect jump. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    static void *const labels[] = {&&l0, &&l1, &&l2,  &&l3,  &&l4,  &&l5,  &&l6,  &&l7,
                                   &&l8, &&l9, &&l10, &&l11, &&l12, &&l13, &&l14, &&l15};
    static unsigned char code[4096];
    unsigned long left = argc > 1 ? strtoul(argv[1], NULL, 10) : 400000000;
    unsigned seed = 1, a = 1, b = 2, at = 0;
    for (unsigned i = 0; i < sizeof code; i++)
        code[i] = (unsigned char)((seed = seed * 1103515245 + 12345) >> 16 & 15);
#define NEXT                                                                                                           \
    if (--left == 0) goto done;                                                                                        \
    at = (at + 1) & (sizeof code - 1);                                                                                 \
    goto *labels[code[at]]
    NEXT;
l0: a += b; NEXT;
l1: b ^= a; NEXT;
l2: a -= 3; NEXT;
l3: b *= 5; NEXT;
l4: a = a << 3 | a >> 29; NEXT;
l5: b -= 7; NEXT;
l6: b += at; NEXT;
l7: a ^= b >> 5; NEXT;
l8: a += 99; NEXT;
l9: b = ~b; NEXT;
l10: a *= 7; NEXT;
l11: b -= a; NEXT;
l12: a = -a; NEXT;
l13: a += at; NEXT;
l14: b = b >> 1 | b << 31; NEXT;
l15: a ^= 0x9e3779b9; NEXT;
done:
    printf("%u %u\n", a, b);
    return 0;
}
