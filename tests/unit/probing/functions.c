/* Functions as compilers make them. Each takes two numbers and 256 bytes. */
#include <stdint.h>

#define PROBED __attribute__((noinline, visibility("default")))
typedef uint64_t u64;

PROBED u64 c_leaf(u64 a, u64 b, uint8_t *bytes)
{
    volatile uint32_t local[16];
    for (unsigned i = 0; i < 16; i++)
        local[i] = (uint32_t)(a >> i) ^ bytes[i];
    u64 sum = b;
    for (unsigned i = 0; i < 16; i++)
        sum = sum * 31 + local[i];
    return sum;
}

PROBED u64 c_recursion(u64 a, u64 b, uint8_t *bytes)
{
    u64 n = a & 7;
    if (n < 2)
        return b + bytes[n];
    return c_recursion(n - 1, b, bytes) + c_recursion(n - 2, b + 1, bytes);
}

PROBED u64 c_switch(u64 a, u64 b, uint8_t *bytes)
{
    u64 state = b;
    for (int i = 0; i < 24; i++)
        switch ((bytes[i] ^ a) & 15) {
        case 0: state += 3; break;
        case 1: state ^= 0x1234567; break;
        case 2: state = state * 5 + 1; break;
        case 3: state = (state << 7) | (state >> 57); break;
        case 4: bytes[i] = (uint8_t)state; break;
        case 5: state -= bytes[i]; break;
        case 6: if (state & 1) return state; break;
        case 7: state = ~state; break;
        case 9: state /= 3; break;
        case 10: state += (u64)i * i; break;
        case 11: bytes[255 - i] ^= 0x55; break;
        case 12: state ^= state >> 11; break;
        default: state++;
        }
    return state;
}

static u64 twice(u64 a) { return a * 2; }
static u64 minus(u64 a) { return a - 9; }
static u64 turned(u64 a) { return a << 3 | a >> 61; }
u64 (*const volatile c_table[])(u64) = {twice, minus, turned, twice};

PROBED u64 c_indirect(u64 a, u64 b, uint8_t *bytes)
{
    for (int i = 0; i < 8; i++)
        b = c_table[(a + bytes[i]) & 3](b);
    return b;
}

PROBED u64 c_tail(u64 a, u64 b, uint8_t *bytes)
{
    if (a & 1)
        return c_leaf(a >> 1, b, bytes);
    if (a & 2)
        return c_switch(b, a, bytes);
    return c_table[b & 3](a);
}

static const double factors[] = {0.5, 1.25, -3.0, 7.75};

PROBED u64 c_floats(u64 a, u64 b, uint8_t *bytes)
{
    double sum = (double)(a & 0xFFFF);
    for (int i = 0; i < 16; i++)
        sum = sum * factors[i & 3] + bytes[i] - (double)(b & 0xFF);
    return (u64)(int64_t)sum;
}

static u64 counter;

PROBED u64 c_global(u64 a, u64 b, uint8_t *bytes)
{
    counter = a;
    for (u64 i = 0; i < (b & 15); i++)
        counter += bytes[i] > 100 ? counter >> 3 : bytes[i];
    return counter;
}

PROBED u64 c_goto(u64 a, u64 b, uint8_t *bytes)
{
    static const void *const labels[] = {&&add, &&rotate, &&flip, &&end};
    u64 i = 0;
next:
    if (i >= 20)
        return b;
    goto *labels[(bytes[i++] + a) & 3];
add:
    b += i;
    goto next;
rotate:
    b = b << 5 | b >> 59;
    goto next;
flip:
    b = ~b;
    goto next;
end:
    i += 2;
    goto next;
}
