/* what: an interpreter of computed gotos, with a site for each of 16 operations
 * build: -O2 -fno-gcse -fno-crossjumping --param max-goto-duplication-insns=40 -static
 * traits: oracle
 */
#include <stdio.h>

int main(void)
{
    static void *const labels[] = {&&l0, &&l1, &&l2, &&l3, &&l4, &&l5, &&l6, &&l7, &&l8, &&l9, &&l10, &&l11, &&l12, &&l13, &&l14, &&l15};
    static unsigned char code[256];
    unsigned seed = 1, a = 1, b = 2, left = 3000;
    for (int i = 0; i < 256; i++)
        code[i] = (unsigned char)((seed = seed * 1103515245 + 12345) >> 16 & 15);
    unsigned char at = 0;
#define NEXT                                                                                                           \
    if (--left == 0) goto done;                                                                                        \
    goto *labels[code[at++]]
    NEXT;
l0: a += b; NEXT;
l1: b ^= a; NEXT;
l2: a -= 3; NEXT;
l3: b *= 5; NEXT;
l4: a = a << 3 | a >> 29; NEXT;
l5: at += a & 3; NEXT;
l6: b += at; NEXT;
l7: a ^= b >> 5; NEXT;
l8: if (b & 1) at++; NEXT;
l9: b = ~b; NEXT;
l10: a *= 7; NEXT;
l11: b -= a; NEXT;
l12: at ^= 1; NEXT;
l13: a += left; NEXT;
l14: b = b >> 1 | b << 31; NEXT;
l15: a ^= 0x9e3779b9; NEXT;
done:
    printf("%u %u\n", a, b);
    return 0;
}
