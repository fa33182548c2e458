/* Throws through functions and catches, and jumps out of others by longjmp; says what came of that.
   A line `wait` has it block in a call until there is one more line. */
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace {

long n_destroyed;

struct Guard {
    long weight;
    ~Guard() { n_destroyed += weight; }
};

jmp_buf place;

} // namespace

#define PROBED extern "C" __attribute__((noipa))

PROBED long thrower(long n)
{
    if (n % 3 == 1)
        throw std::runtime_error(std::to_string(n));
    if (n % 3 == 2)
        throw n;
    return n * 2;
}

/* Thrown through, with something to be destroyed on the way. */
PROBED long passed(long n)
{
    Guard guard{n};
    return thrower(n) + 1;
}

/* Catches, and throws again what it does not like. */
PROBED long between(long n)
{
    try {
        return passed(n) + passed(n + 3);
    } catch (const std::runtime_error &error) {
        if (n > 10)
            throw;
        return std::stol(error.what()) * 100;
    }
}

PROBED long catcher(long n)
{
    try {
        return between(n);
    } catch (long thrown) {
        return -thrown;
    } catch (const std::exception &error) {
        return static_cast<long>(std::strlen(error.what())) * 1000;
    }
}

PROBED long jumper(long n)
{
    if (n % 2)
        longjmp(place, static_cast<int>(n));
    return n;
}

/* Jumped out of. */
PROBED long left_behind(long n)
{
    return jumper(n) + 1;
}

PROBED long jumped_to(long n)
{
    int jumped = setjmp(place);
    if (jumped)
        return -jumped;
    return left_behind(n);
}

/* As a thread that is blocked in a call, deep in functions that are probed. */
PROBED int blocked(char *line, int size)
{
    return std::fgets(line, size, stdin) != nullptr;
}

int main()
{
    char line[64];
    std::puts("ready");
    std::fflush(stdout);
    while (blocked(line, sizeof line)) {
        long sum = 0;
        n_destroyed = 0;
        for (long n = 0; n < 20; n++) {
            sum = sum * 7 + catcher(n);
            sum = sum * 7 + jumped_to(n);
        }
        std::printf("%ld %ld\n", sum, n_destroyed);
        std::fflush(stdout);
    }
    return 0;
}
