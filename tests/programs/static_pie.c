/* what: position-independent, static and both: relocations by the program itself, indirect functions, thread-local data, constructors
 * build: -O1 -static-pie
 * also: static -O1 -static
 * also: nopie -O1 -no-pie -fno-pie
 * also: nolazy -O1 -Wl,-z,now,-z,relro
 * also: lazy -O1 -Wl,-z,lazy
 * traits: oracle:static oracle:nopie
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int order;
static __thread int own = 7;
static int zero(int x) { return x; }
static int one(int x) { return x + 1; }
static int (*const table[])(int) = {zero, one, abs};

static __attribute__((constructor(101))) void first(void) { order = order * 10 + 1; }
static __attribute__((constructor(102))) void second(void) { order = order * 10 + 2; }
static __attribute__((destructor)) void last(void) { printf("destructor %d\n", order); }
static void at_exit(void) { puts("at exit"); }

static int chosen(int x) { return x * 3; }
static int (*choose(void))(int) { return chosen; }
int indirect(int x) __attribute__((ifunc("choose")));

int main(int argc, char **argv)
{
    (void)argv;
    atexit(at_exit);
    int sum = own;
    for (int i = 0; i < 30; i++)
        sum = sum * 5 % 10007 + table[i % 3](i - 15) + indirect(i);
    char text[100];
    memset(text, 'a' + argc, sizeof text);
    text[99] = '\0';
    printf("order %d sum %d length %zu %s\n", order, sum, strlen(text), strchr(text, 'x') == NULL ? "none" : "one");
    return 0;
}
