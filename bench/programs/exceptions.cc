// Exceptions: each turn calls a function that throws, through one more frame, and catches what it threw.
#include <cstdio>
#include <cstdlib>

__attribute__((noinline, noclone)) static void throw_one(unsigned long turn)
{
    throw turn;
}

__attribute__((noinline, noclone)) static void pass_on(unsigned long turn)
{
    throw_one(turn);
    std::puts("not reached");
}

int main(int argc, char **argv)
{
    unsigned long turns = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000, total = 0;
    for (unsigned long turn = 0; turn < turns; turn++) {
        try {
            pass_on(turn);
        } catch (unsigned long caught) {
            total += caught;
        }
    }
    std::printf("%lu\n", total);
    return 0;
}
