// what: an exception that nobody catches ends the program by abort, after its message
// build: -O1
// status: SIGABRT
#include <stdexcept>

struct Guard {
    ~Guard() {}
};
__attribute__((noinline)) static void fail() { throw std::runtime_error("nobody wants this"); }
int main()
{
    Guard guard;
    fail();
}
