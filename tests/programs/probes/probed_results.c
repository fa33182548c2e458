/* Functions with results of several types, each called once; what it prints is what events must say. */
#include <stdbool.h>
#include <stdio.h>

struct point {
    int x;
    double y;
};

static struct point place = {-7, 2.25};

__attribute__((noinline)) int negative(int n)
{
    return -n;
}

__attribute__((noinline)) double half(int n)
{
    return n / 2.0;
}

__attribute__((noinline)) bool is_even(int n)
{
    return n % 2 == 0;
}

__attribute__((noinline)) signed char small(int n)
{
    return (signed char)n;
}

__attribute__((noinline)) unsigned short wide(int n)
{
    return (unsigned short)n;
}

__attribute__((noinline)) struct point *find(int n)
{
    return n ? &place : NULL;
}

__attribute__((noinline)) const char *name(int n)
{
    return n ? "yes" : "no";
}

int main(void)
{
    printf("%d %.2f %d %d %d\n", negative(3), half(5), is_even(4), small(-5), wide(-1));
    struct point *found = find(1);
    printf("%d %.2f %s\n", found->x, found->y, name(1));
    return 0;
}
