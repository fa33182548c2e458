/* Variables of all kinds, in functions that print what they have: what captures take is held against that.
 *
 * Each line is a function's name and what an expression of C's comes to there, in the order of the expressions.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum color { RED, GREEN = 5, BLUE };
enum level { LOW = -3, HIGH = 9 };

struct inner {
    short small;
    double real;
    char text[12];
};

struct node {
    int number;
    unsigned flag : 3;
    int signed_bits : 5;
    unsigned long wide_bits : 40;
    bool is_set : 1;
    struct node *next;
    struct inner inner;
    union {
        unsigned whole;
        unsigned char bytes[4];
    };
    int grid[3][4];
    const char *name;
};

typedef struct node node_t;
struct small {
    int a, b;
};
struct mixed {
    double real;
    long number;
};
struct large {
    long numbers[5];
};

/* A program that is optimised as a whole would do without some of them. */
#define USED __attribute__((used))
USED int counter = -7;
USED unsigned long long wide = 0xfedcba9876543210ull;
USED const char *const greeting = "hello";
USED double factor = 2.5;
USED __thread int own_number = 41;
static __thread long own_other = -5;

static node_t second = {.number = 22, .name = "second"};
static node_t first = {
    .number = -11,
    .flag = 5,
    .signed_bits = -9,
    .wide_bits = 0xabcdef1234,
    .is_set = true,
    .next = &second,
    .inner = {-300, 0.125, "inside"},
    .whole = 0x04030201,
    .grid = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}},
    .name = "first",
};

/* The place that locals are taken at: everything that is live around it is kept. */
#define HERE(label) __asm__ volatile(".globl " #label "\n" #label ": nop" ::: "memory")
#define KEEP(value) __asm__ volatile("" ::"r"(value) : "memory")

__attribute__((noinline, noipa)) long scalars(
    signed char tiny, unsigned char byte, short small, unsigned short half, int number, unsigned word, long large)
{
    printf("scalars %d %u %d %u %d %u %ld\n", tiny, byte, small, half, number, word, large);
    return tiny + byte + small + half + number + word + large;
}

__attribute__((noinline, noipa)) double reals(float single, double real, int between, float other)
{
    printf("reals %.17g %.17g %d %.17g\n", single, real, between, other);
    return single * real + between + other;
}

__attribute__((noinline, noipa)) float halve(float single)
{
    printf("halve %.17g\n", single);
    return single / 2;
}

__attribute__((noinline, noipa)) int negate(int value)
{
    printf("negate %d\n", value);
    return -value;
}

__attribute__((noinline, noipa)) bool is_odd(unsigned value)
{
    printf("is_odd %u\n", value);
    return value & 1;
}

__attribute__((noinline, noipa)) void nothing(bool yes, enum color color, enum level level)
{
    printf("nothing %d %u %d\n", yes, color, level);
}

__attribute__((noinline, noipa)) long many(long a, long b, long c, long d, long e, long f, int g, double h, short i)
{
    printf("many %ld %ld %ld %ld %ld %ld %d %.17g %d\n", a, b, c, d, e, f, g, h, i);
    return a + b + c + d + e + f + g + (long)h + i;
}

__attribute__((noinline, noipa)) long by_value(struct small small, struct mixed mixed, struct large large, char last)
{
    printf("by_value %d %d %.17g %ld %ld %d\n", small.a, small.b, mixed.real, mixed.number, large.numbers[4], last);
    return small.a + mixed.number + large.numbers[4] + last;
}

__attribute__((noinline, noipa)) struct node *walk(struct node *node, char **words)
{
    printf("walk %d %u %d %lu %d %d %d %.17g %s %u %d %s %s %d\n", node->number, node->flag, node->signed_bits,
        (unsigned long)node->wide_bits, node->is_set, node->next->number, node->inner.small, node->inner.real,
        node->inner.text, node->bytes[2], node->grid[1][2], node->name, words[1], (int)(&node->grid[2][1] - node->grid[0]));
    return node->next;
}

__attribute__((noinline, noipa)) long locals(int n)
{
    long sum = n * 3L;
    double ratio = n / 4.0;
    int values[4] = {n, n + 1, n + 2, n + 3};
    struct small pair = {n, -n};
    KEEP(values);
    KEEP(&pair);
    KEEP(&ratio);
    KEEP(&sum);
    for (int turn = 0; turn < 2; turn++) {
        long inner = sum + turn;
        KEEP(&inner);
        printf("locals %d %ld %.17g %d %d %d %ld %d %llu %s %.17g\n", n, sum, ratio, values[2], pair.b, turn, inner, counter,
            wide, greeting, factor);
        KEEP(&turn);
        HERE(inside_locals);
        sum += inner;
    }
    return sum;
}

__attribute__((noinline, noipa)) void of_the_thread(int code)
{
    errno = code;
    own_number += code;
    own_other -= code;
    int saved = errno;
    printf("of_the_thread %d %d %ld\n", saved, own_number, own_other);
    errno = saved;
    HERE(inside_thread);
}

int main(void)
{
    char *words[] = {"zero", "one", NULL};
    setvbuf(stdout, NULL, _IOLBF, 0);
    scalars(-5, 250, -30000, 60000, -2000000000, 4000000000u, -9000000000000000000l);
    reals(1.1f, -2.2, 7, 3.3f);
    halve(5.5f);
    negate(77);
    is_odd(3);
    nothing(true, BLUE, LOW);
    many(1, -2, 3, -4, 5, -6, -7, 8.5, -9);
    by_value((struct small){1, -2}, (struct mixed){0.5, -3}, (struct large){{1, 2, 3, 4, 5}}, 'x');
    walk(&first, words);
    locals(10);
    of_the_thread(ENOENT);
    of_the_thread(EAGAIN);
    return 0;
}
