/* The same interpreter with a switch: one shared indirect jump. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    static unsigned char code[4096];
    unsigned long left = argc > 1 ? strtoul(argv[1], NULL, 10) : 400000000;
    unsigned seed = 1, a = 1, b = 2, at = 0;
    for (unsigned i = 0; i < sizeof code; i++)
        code[i] = (unsigned char)((seed = seed * 1103515245 + 12345) >> 16 & 15);
    while (--left != 0) {
        at = (at + 1) & (sizeof code - 1);
        switch (code[at]) {
        case 0: a += b; break;
        case 1: b ^= a; break;
        case 2: a -= 3; break;
        case 3: b *= 5; break;
        case 4: a = a << 3 | a >> 29; break;
        case 5: b -= 7; break;
        case 6: b += at; break;
        case 7: a ^= b >> 5; break;
        case 8: a += 99; break;
        case 9: b = ~b; break;
        case 10: a *= 7; break;
        case 11: b -= a; break;
        case 12: a = -a; break;
        case 13: a += at; break;
        case 14: b = b >> 1 | b << 31; break;
        default: a ^= 0x9e3779b9; break;
        }
    }
    printf("%u %u\n", a, b);
    return 0;
}
