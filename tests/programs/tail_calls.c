/* what: tail calls, direct, indirect and mutual, a million deep without stack, and into libc
 * build: -O2 -fno-inline
 */
#include <stdio.h>

typedef unsigned step(unsigned, unsigned);
static step odd, even, finish;
static step *const table[] = {even, odd, finish};

__attribute__((noipa)) static unsigned odd(unsigned n, unsigned sum) { return n == 0 ? finish(n, sum) : even(n - 1, sum * 3 + 1); }
__attribute__((noipa)) static unsigned even(unsigned n, unsigned sum) { return n == 0 ? finish(n, sum) : odd(n - 1, sum ^ n); }
__attribute__((noipa)) static unsigned finish(unsigned n, unsigned sum) { return sum + n; }
__attribute__((noipa)) static unsigned jump(unsigned n, unsigned sum) { return table[n % 3](n, sum); }
__attribute__((noipa)) static int say(const char *text) { return puts(text); }

int main(void)
{
    unsigned sum = even(1000000, 1);
    for (unsigned i = 0; i < 300; i++)
        sum = jump(i, sum);
    printf("%u\n", sum);
    return say("by a tail call") < 0;
}
