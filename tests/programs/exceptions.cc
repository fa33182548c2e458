// what: C++ exceptions: over frames with destructors, rethrown, nested, by base class, in constructors, exception_ptr
// build: -O1
// also: static -O2 -static
// traits: oracle-long:static
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

static int destroyed;
struct Guard {
    ~Guard() { destroyed++; }
};
struct Failing {
    Guard guard;
    explicit Failing(bool fail)
    {
        if (fail)
            throw std::length_error("in a constructor");
    }
};

__attribute__((noinline)) static int dive(int depth, int kind)
{
    Guard guard;
    if (depth > 0)
        return dive(depth - 1, kind) + 1;
    switch (kind % 4) {
    case 0: throw kind;
    case 1: throw std::runtime_error("runtime " + std::to_string(kind));
    case 2: throw std::out_of_range("range");
    default: return kind;
    }
}

__attribute__((noinline)) static int catch_some(int depth, int kind)
{
    try {
        return dive(depth, kind);
    } catch (int value) {
        return -value;
    } catch (const std::logic_error &error) {
        std::printf("logic: %s\n", error.what());
        throw;
    }
}

int main()
{
    long sum = 0;
    for (int i = 0; i < 6; i++) {
        try {
            sum += catch_some(i % 9, i);
        } catch (const std::exception &error) {
            std::printf("caught %s\n", error.what());
            try {
                Failing failing(i & 1);
                throw 5;
            } catch (const std::length_error &inner) {
                std::printf("nested %s\n", inner.what());
            } catch (...) {
                sum += 1000;
            }
        }
    }
    std::exception_ptr kept;
    try {
        throw std::string("kept");
    } catch (...) {
        kept = std::current_exception();
    }
    try {
        std::rethrow_exception(kept);
    } catch (const std::string &text) {
        std::printf("%s %d\n", text.c_str(), std::uncaught_exceptions());
    }
    std::printf("%ld %d\n", sum, destroyed);
}
