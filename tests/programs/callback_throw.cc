// what: C++ exceptions thrown in callbacks of C functions: qsort, bsearch; caught on the other side, many times
// build: -O1 -pthread
// traits: oracle-long
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <vector>

static int countdown;

static int compare(const void *a, const void *b)
{
    struct Guard {
        ~Guard() { countdown--; }
    } guard;
    if (countdown == 0)
        throw std::runtime_error("compared " + std::to_string(*static_cast<const int *>(a)));
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static int look(const void *key, const void *element)
{
    if (*static_cast<const int *>(element) == 40)
        throw 40;
    return *static_cast<const int *>(key) - *static_cast<const int *>(element);
}

static void nested(int depth)
{
    std::vector<int> values;
    for (int i = 0; i < 20; i++)
        values.push_back((i * 7 + depth) % 20);
    countdown = 5 * depth + 3;
    try {
        qsort(values.data(), values.size(), sizeof(int), compare);
        std::printf("sorted %d %d\n", values[0], values[19]);
    } catch (const std::runtime_error &error) {
        std::printf("depth %d: %s, %d\n", depth, error.what(), countdown);
        if (depth < 4)
            nested(depth + 1);
        if (depth == 2)
            throw;
    }
}

int main()
{
    for (int i = 0; i < 3; i++) {
        try {
            nested(i);
        } catch (const std::exception &error) {
            std::printf("outside: %s\n", error.what());
        }
        const int table[] = {10, 20, 30, 40, 50, 60, 70};
        for (int key : {40, 20, 70}) {
            try {
                const auto *found = static_cast<const int *>(bsearch(&key, table, 7, sizeof(int), look));
                std::printf("found %d\n", found ? *found : -1);
            } catch (int at) {
                std::printf("stopped at %d\n", at);
            }
        }
    }
}
