// what: virtual calls with single, multiple and virtual inheritance, member pointers, thunks, lambdas, std::function
// build: -O1 -fno-devirtualize
// also: static -O2 -static
// traits: oracle:static
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual int area(int x) const = 0;
    int plain(int x) { return x + 1; }
    virtual int late(int x) { return x + 2; }
};
struct Named {
    virtual ~Named() = default;
    virtual int name(int x) { return x * 5; }
};
struct Square : Shape {
    int area(int x) const override { return x * x; }
};
struct Line : Shape, Named {
    int area(int) const override { return 0; }
    int name(int x) override { return x * 7; }
    int late(int x) override { return x + 3; }
};
struct Base {
    int value = 3;
    virtual int get() { return value; }
    virtual ~Base() = default;
};
struct Left : virtual Base {
    int get() override { return value + 1; }
};
struct Right : virtual Base {};
struct Diamond : Left, Right {
    int get() override { return value + 2; }
};

int main()
{
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 0; i < 30; i++) {
        if (i % 3 == 0)
            shapes.push_back(std::make_unique<Square>());
        else
            shapes.push_back(std::make_unique<Line>());
    }
    long sum = 0;
    int (Shape::*plain)(int) = &Shape::plain;
    int (Shape::*late)(int) = &Shape::late;
    std::function<int(int)> add = [&sum](int x) { return static_cast<int>(sum & 7) + x; };
    for (int round = 0; round < 8; round++) {
        for (auto &shape : shapes) {
            sum += shape->area(round) + (shape.get()->*plain)(round) + (shape.get()->*late)(round);
            if (auto *named = dynamic_cast<Named *>(shape.get()))
                sum += named->name(round);
            sum += add(round);
        }
    }
    Diamond diamond;
    Base *base = &diamond;
    Left *left = &diamond;
    sum += base->get() * 100 + left->get();
    std::printf("%ld\n", sum);
}
