/* what: switches that become jump tables, dense, sparse and nested, and an interpreter with one shared jump
 * build: -O2 -fno-inline
 * also: nopie -O2 -fno-inline -no-pie
 * traits: oracle:nopie
 */
#include <stdio.h>

static unsigned dense(unsigned op, unsigned x)
{
    switch (op) {
    case 0: return x + 1;
    case 1: return x * 3;
    case 2: return x ^ 0x55;
    case 3: return x >> 2;
    case 4: return ~x;
    case 5: return x * x;
    case 6: return x << 7 | x >> 25;
    case 7: return x - 99;
    case 8: return x & 0xffff;
    default: return 0;
    }
}

static const char *sparse(unsigned op)
{
    switch (op) {
    case 1: return "one";
    case 10: return "ten";
    case 100: return "hundred";
    case 101: return "hundred and one";
    case 102: return "hundred and two";
    case 103: return "hundred and three";
    case 104: return "hundred and four";
    case 105: return "hundred and five";
    default: return "other";
    }
}

static unsigned interpret(const unsigned char *code, unsigned rounds)
{
    unsigned accumulator = 1, at = 0;
    for (;;) {
        switch (code[at++]) {
        case 0: accumulator += 7; break;
        case 1: accumulator *= 5; break;
        case 2: accumulator ^= accumulator >> 3; break;
        case 3: if (accumulator & 1) at++; break;
        case 4: accumulator = accumulator << 1 | accumulator >> 31; break;
        case 5: if (--rounds) at = 0; else return accumulator; break;
        case 6: accumulator--; break;
        }
    }
}

int main(void)
{
    unsigned x = 12345;
    for (unsigned i = 0; i < 600; i++)
        x = dense(x % 11, x) + i;
    printf("%u\n", x);
    for (unsigned i = 90; i < 110; i++)
        puts(sparse(i));
    static const unsigned char code[] = {0, 1, 2, 3, 4, 6, 3, 1, 2, 0, 4, 5};
    printf("%u\n", interpret(code, 100));
    return 0;
}
