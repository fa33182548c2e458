// what: exceptions over 2,000 frames, out of threads' functions, with thread-local objects, and while others throw, too
// build: -O1 -pthread -fno-inline -fno-optimize-sibling-calls
#include <cstdio>
#include <exception>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

struct Counted {
    static thread_local int alive;
    Counted() { alive++; }
    ~Counted() { alive--; }
};
thread_local int Counted::alive = 0;

static int dive(int n)
{
    Counted counted;
    if (n == 0)
        throw std::out_of_range("bottom");
    return dive(n - 1) + Counted::alive;
}

static int attempt(int depth)
{
    int caught = 0;
    for (int i = 0; i < 3; i++) {
        try {
            dive(depth);
        } catch (const std::logic_error &) {
            caught += 1 + Counted::alive;
        }
    }
    return caught;
}

int main()
{
    std::printf("%d\n", attempt(2000));
    std::vector<std::future<int>> results;
    for (int i = 0; i < 4; i++)
        results.push_back(std::async(std::launch::async, attempt, 100 * i));
    for (auto &result : results)
        std::printf("%d\n", result.get());
    auto failing = std::async(std::launch::async, dive, 10);
    try {
        failing.get();
    } catch (const std::exception &error) {
        std::printf("from the thread: %s\n", error.what());
    }
    std::exception_ptr kept;
    std::thread([&kept] {
        try {
            dive(3);
        } catch (...) {
            kept = std::current_exception();
        }
    }).join();
    try {
        std::rethrow_exception(kept);
    } catch (const std::exception &error) {
        std::printf("kept: %s\n", error.what());
    }
}
