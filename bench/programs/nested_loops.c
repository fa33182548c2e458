/* 17 x 47 x 347 x 997 turns of the innermost loop, five instructions each: about 1.38 thousand million instructions. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    unsigned outer = argc > 1 ? (unsigned)atoi(argv[1]) : 17;
    unsigned long sum = 0;
    for (unsigned i = 0; i < outer; i++)
        for (unsigned j = 0; j < 47; j++)
            for (unsigned k = 0; k < 347; k++) {
                unsigned long x = i + j + k;
                for (unsigned l = 0; l < 997; l++) {
                    sum ^= x;
                    x += l;
                }
            }
    printf("%lu\n", sum);
    return 0;
}
