/* what: indirect jumps and calls that see a second, a third and many targets only after a while
 * build: -O1 -static
 * also: pie -O1
 * traits: oracle
 */
#include <stdio.h>

static unsigned add(unsigned x) { return x + 7; }
static unsigned multiply(unsigned x) { return x * 5; }
static unsigned rotate(unsigned x) { return x << 3 | x >> 29; }
static unsigned negate(unsigned x) { return -x; }

static unsigned (*const functions[])(unsigned) = {add, multiply, rotate, negate};

__attribute__((noinline)) static unsigned call(unsigned x, unsigned which) { return functions[which](x) ^ which; }

/* The carry is live across the jump: whatever finds the target must keep it. */
__attribute__((noinline)) static unsigned jump(unsigned x, unsigned which)
{
    static const void *const labels[] = {&&zero, &&one, &&two, &&three};
    unsigned carry = 0;
    asm goto("bt $3, %[x]\n\tjmp *%[target]" : : [x] "r"(x), [target] "r"(labels[which]) : "cc" : zero, one, two, three);
    __builtin_unreachable();
zero:
    asm("adc $0, %0" : "+r"(carry));
    return x + carry;
one:
    asm("adc $1, %0" : "+r"(carry));
    return x * 3 + carry;
two:
    asm("adc $2, %0" : "+r"(carry));
    return (x ^ 0x55) + carry;
three:
    asm("adc $3, %0" : "+r"(carry));
    return (x >> 1) + carry;
}

int main(void)
{
    unsigned x = 1;
    for (unsigned n_targets = 1; n_targets <= 4; n_targets++)
        for (unsigned i = 0; i < 50; i++)
            x = jump(call(x, i % n_targets), (x >> 4) % n_targets);
    for (unsigned i = 0; i < 50; i++)
        x = jump(call(x, 0), 0);
    printf("%u\n", x);
    return 0;
}
