/* Loops of one block, and of two that go one way or the other, and nothing beside them: ROUNDS turns of each kind. */
#include <stdio.h>
#include <stdlib.h>

/* A loop in assembly: %0 is what it works on, %1 the turns that are left. */
#define LOOP(name, code)                                                                                               \
    static unsigned long name(unsigned long turns)                                                                     \
    {                                                                                                                  \
        unsigned long sum = 0;                                                                                         \
        __asm__ volatile(code : "+r"(sum), "+r"(turns) : : "cc");                                                      \
        return sum;                                                                                                    \
    }

/* Three instructions and a branch. */
LOOP(count_down, "1: add %1, %0\n"
                 "   xor $5, %0\n"
                 "   dec %1\n"
                 "   jnz 1b")

/* One turn in sixteen takes a second block along. */
LOOP(count_with_detour, "1: add %1, %0\n"
                        "   test $15, %1\n"
                        "   jnz 2f\n"
                        "   xor $9, %0\n"
                        "2: dec %1\n"
                        "   jnz 1b")

/* The condition stands in front of the body, as compilers write loops that may run never. */
LOOP(count_from_the_top, "1: test %1, %1\n"
                         "   jz 2f\n"
                         "   add %1, %0\n"
                         "   dec %1\n"
                         "   jmp 1b\n"
                         "2:")

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 500000000;
    printf("%lx %lx %lx\n", count_down(rounds), count_with_detour(rounds), count_from_the_top(rounds));
    return 0;
}
