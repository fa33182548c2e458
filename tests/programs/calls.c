/* what: direct and indirect calls, from one site to one, a few and very many functions, with callbacks through libc
 * build: -O1 -fno-inline
 * also: nopie -O1 -fno-inline -no-pie
 * also: static -O1 -fno-inline -static
 * also: static_pie -O1 -fno-inline -static-pie
 * traits: oracle:nopie oracle:static_pie
 */
#include <stdio.h>
#include <stdlib.h>

#define EIGHT(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define DEFINE(n) static unsigned f##n(unsigned x) { return x * 3 + 0##n; }
#define NAME(n) f##n,
#define ALL(X)                                                                                                         \
    EIGHT(X, 1) EIGHT(X, 2) EIGHT(X, 3) EIGHT(X, 4) EIGHT(X, 5) EIGHT(X, 6) EIGHT(X, 7) EIGHT(X, 10) EIGHT(X, 11)       \
    EIGHT(X, 12) EIGHT(X, 13) EIGHT(X, 14) EIGHT(X, 15) EIGHT(X, 16) EIGHT(X, 17) EIGHT(X, 20)
ALL(DEFINE)
static unsigned (*const many[])(unsigned) = {ALL(NAME)};
enum { COUNT = sizeof many / sizeof *many };

static int ascending(const void *a, const void *b) { return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b); }
static int descending(const void *a, const void *b) { return ascending(b, a); }
static void at_exit_first(void) { puts("first registered, last run"); }
static void at_exit_second(void) { puts("second registered"); }

int main(void)
{
    unsigned x = 1;
    for (int i = 0; i < 500; i++)
        x = many[0](x);
    for (int i = 0; i < 500; i++)
        x = many[i & 3](x);
    for (int i = 0; i < 1500; i++)
        x = many[x % COUNT](x);
    int numbers[64];
    for (int i = 0; i < 64; i++)
        numbers[i] = (int)(x = x * 1103515245 + 12345) >> 8;
    qsort(numbers, 64, sizeof *numbers, ascending);
    int key = numbers[40];
    int *found = bsearch(&key, numbers, 64, sizeof *numbers, ascending);
    qsort(numbers, 64, sizeof *numbers, descending);
    atexit(at_exit_first);
    atexit(at_exit_second);
    printf("%u %d %td\n", x, numbers[0], found - numbers);
    return 0;
}
