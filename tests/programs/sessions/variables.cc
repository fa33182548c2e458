// Variables of C++: members of classes and of their bases, references, namespaces, inlined functions.
#include <cstdio>
#include <string>
#include <vector>

namespace shop {
int n_sold = 3;
namespace {
volatile long hidden = -4;
}
enum class kind : unsigned char { small = 1, large = 200 };
class base {
  public:
    int weight = 12;
    virtual ~base() = default;
};
class item : public base {
  public:
    double price = 2.5;
    kind what = kind::large;
    const char *name = "lamp";
    int &sold = n_sold;
    static int n_items;
    __attribute__((noinline, noipa)) double total(int n, const item &other) const;
};
int item::n_items = 8;

double item::total(int n, const item &other) const
{
    std::printf("total %d %d %.17g %u %s %d %d %ld %d %.17g\n", n, weight, price, (unsigned)what, name, sold, n_sold, hidden,
        n_items, other.price);
    return n * price;
}
} // namespace shop

static inline __attribute__((always_inline)) int twice(int number)
{
    int doubled = number * 2;
    __asm__ volatile(".globl inside_twice\ninside_twice: nop" ::"r"(doubled), "r"(number) : "memory");
    return doubled;
}

__attribute__((noinline, noipa)) int outer(int value)
{
    std::printf("outer %d %d %d\n", value + 1, (value + 1) * 2, value);
    int result = twice(value + 1);
    __asm__ volatile("" ::"r"(value), "r"(result));
    return result;
}

__attribute__((noinline, noipa)) std::size_t measure(std::string by_value, std::vector<int> numbers, int &counted)
{
    std::printf("measure %s %d %d\n", by_value.c_str(), numbers[1], counted);
    return by_value.size() + numbers.size() + (std::size_t)counted++;
}

int main()
{
    shop::item one, two;
    two.price = 4.5;
    int counted = 6;
    one.total(5, two);
    outer(20);
    measure("a string that is longer than fifteen", {1, 2, 3}, counted);
    return 0;
}
