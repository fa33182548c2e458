/* Functions of all kinds, among which places are looked for: aliases, two of one name, inlined ones, cold parts. */
#include <stdio.h>

extern int other_work(int n);

static inline __attribute__((always_inline)) int add(int a, int b)
{
    int tripled = a * 3;
    return tripled + b;
}

__attribute__((noinline)) static int shared_name(int n)
{
    return n * 7 + 1;
}

__attribute__((noinline)) int twice(int n)
{
    int total = 0;

    for (int i = 0; i < n; i++) {
        int square = i * i;
        total += add(n, square);
    }
    return total + add(n, 7);
}

int twice_too(int n) __attribute__((alias("twice")));

__attribute__((noinline)) static int copied(int n, int kind)
{
    if (kind == 4)
        printf("four %d\n", n);
    return n * kind;
}

__attribute__((noinline, cold)) static void complain(int n)
{
    printf("large: %d\n", n);
}

__attribute__((noinline)) int rarely(int n)
{
    if (n > 1000) {
        complain(n);
        complain(n * 3);
        n /= 2;
    }
    return n + 1;
}

int seen_by_others(int n)
{
    return n * n + 3;
}

int main(int argc, char **argv)
{
    printf("%d\n", seen_by_others(argc));
    printf("%d %d\n", twice(argc), add(argc, 1));
    printf("%d %d\n", shared_name(argc), other_work(argc));
    printf("%d %d\n", copied(argc, 4), rarely(argc));
    return argv[0] == NULL;
}
