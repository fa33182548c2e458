/* Loops of one block, and of two that go one way or the other, and nothing beside them: ROUNDS turns of each kind. */
#include <stdio.h>
#include <stdlib.h>

/* Three instructions and a branch. */
static unsigned long count_down(unsigned long turns)
{
    unsigned long sum = 0;
    __asm__ volatile("1: add %1, %0\n"
                     "   xor $5, %0\n"
                     "   dec %1\n"
                     "   jnz 1b"
                     : "+r"(sum), "+r"(turns)
                     :
                     : "cc");
    return sum;
}

/* One turn in sixteen takes a second block along. */
static unsigned long count_with_detour(unsigned long turns)
{
    unsigned long sum = 0;
    __asm__ volatile("1: add %1, %0\n"
                     "   test $15, %1\n"
                     "   jnz 2f\n"
                     "   xor $9, %0\n"
                     "2: dec %1\n"
                     "   jnz 1b"
                     : "+r"(sum), "+r"(turns)
                     :
                     : "cc");
    return sum;
}

/* The condition stands in front of the body, as compilers write loops that may run never. */
static unsigned long count_from_the_top(unsigned long turns)
{
    unsigned long sum = 0;
    __asm__ volatile("1: test %1, %1\n"
                     "   jz 2f\n"
                     "   add %1, %0\n"
                     "   dec %1\n"
                     "   jmp 1b\n"
                     "2:"
                     : "+r"(sum), "+r"(turns)
                     :
                     : "cc");
    return sum;
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 500000000;
    printf("%lx %lx %lx\n", count_down(rounds), count_with_detour(rounds), count_from_the_top(rounds));
    return 0;
}
