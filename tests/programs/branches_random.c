/* what: branches that no one can predict, for long, then functions that never ran, again and again; calls through a table
 * build: -O1 -fno-tree-vectorize -fno-if-conversion -fno-if-conversion2
 * also: static -O1 -fno-tree-vectorize -fno-if-conversion -fno-if-conversion2 -static
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 42;

static unsigned draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33);
}

__attribute__((noipa)) static unsigned mix(unsigned value) { return value * 2654435761u; }
__attribute__((noipa)) static unsigned turn(unsigned value) { return value << 7 | value >> 25; }
__attribute__((noipa)) static unsigned add(unsigned value) { return value + 12345; }

static unsigned (*const table[])(unsigned) = {mix, turn, add};

__attribute__((noipa)) static unsigned spin(unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned drawn = draw();
#define BRANCH(bit) \
        if (drawn & 1u << bit) \
            sum = sum * bit ^ drawn;
        BRANCH(8) BRANCH(9) BRANCH(10) BRANCH(11) BRANCH(12) BRANCH(13) BRANCH(14) BRANCH(15)
        BRANCH(16) BRANCH(17) BRANCH(18) BRANCH(19) BRANCH(20) BRANCH(21) BRANCH(22) BRANCH(23)
        if (drawn & 4)
            sum = mix(sum);
        if ((drawn & 0xf0) == 0)
            sum = table[drawn % 3](sum);
    }
    return sum;
}

#define NEW(number) \
    __attribute__((noipa)) static unsigned new_##number(unsigned value) \
    { \
        for (unsigned i = 0; i < 40; i++) \
            value = value & 1u << number % 8 ? mix(value) + number : turn(value) ^ i; \
        return value; \
    }
NEW(0)
NEW(1)
NEW(2)
NEW(3)

static unsigned (*const news[])(unsigned) = {new_0, new_1, new_2, new_3};

int main(int argc, char **argv)
{
    unsigned sum = 0, n = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
    for (int phase = 0; phase < 4; phase++) {
        sum += spin(n);
        sum = news[phase](sum);
    }
    printf("%u\n", sum);
    return 0;
}
