// Virtual calls on objects of eight classes, mixed.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

struct Node {
    virtual unsigned step(unsigned x) = 0;
    virtual ~Node() = default;
};
template <unsigned N> struct Kind : Node {
    unsigned state = N;
    unsigned step(unsigned x) override
    {
        state += x;
        return x * (2 * N + 1) + state;
    }
};

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 400000;
    std::vector<std::unique_ptr<Node>> nodes;
    unsigned seed = 1;
    for (int i = 0; i < 256; i++) {
        seed = seed * 1103515245 + 12345;
        switch (seed >> 20 & 7) {
        case 0: nodes.push_back(std::make_unique<Kind<1>>()); break;
        case 1: nodes.push_back(std::make_unique<Kind<2>>()); break;
        case 2: nodes.push_back(std::make_unique<Kind<3>>()); break;
        case 3: nodes.push_back(std::make_unique<Kind<4>>()); break;
        case 4: nodes.push_back(std::make_unique<Kind<5>>()); break;
        case 5: nodes.push_back(std::make_unique<Kind<6>>()); break;
        case 6: nodes.push_back(std::make_unique<Kind<7>>()); break;
        default: nodes.push_back(std::make_unique<Kind<8>>()); break;
        }
    }
    unsigned x = 1;
    for (unsigned long round = 0; round < rounds; round++)
        for (auto &node : nodes)
            x = node->step(x);
    std::printf("%u\n", x);
}
