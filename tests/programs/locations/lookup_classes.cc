/* Names of C++: overloaded functions, members, templates, operators, namespaces without a name. */
#include <cstdio>
#include <string>

namespace ns {
struct Base {
    virtual int go(int n) { return n; }
    virtual ~Base() {}
};

class Widget : public Base
{
  public:
    explicit Widget(int n) : kept(n) {}
    int go(int n) override;
    int small() const { return kept * 2; }
    template <class T> T most(T a, T b) { return a > b ? a : b; }
    int operator()(int n) const { return kept + n; }
    bool operator<(const Widget &other) const { return kept < other.kept; }
    explicit operator int() const { return kept; }
    int kept;
};

__attribute__((noinline)) int Widget::go(int n)
{
    return small() + n;
}
__attribute__((noinline)) int over(int n)
{
    return n + 1;
}
__attribute__((noinline)) int over(double n)
{
    return (int)n;
}
__attribute__((noinline)) int over(const std::string &text)
{
    return (int)text.size();
}
}  // namespace ns

namespace
{
__attribute__((noinline)) int secret(int n)
{
    return n * 5;
}
}  // namespace

int main(int argc, char **)
{
    ns::Widget one(argc), two(argc + 1);
    auto twice = [&](int n) { return one(n) + secret(n); };
    std::printf("%d %d %f %d %d\n", one.go(3), one.most(1, argc), one.most(1.5, 2.5), one < two, int(one));
    std::printf("%d %d %d %d\n", ns::over(argc), ns::over(2.5), ns::over("abc"), twice(argc));
}
