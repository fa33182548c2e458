/* Comes to a function by several ways for a line: by calls with large and odd frames, by recursion, through a function of
   the C library, by tail calls, and from a function without a frame. */
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT __attribute__((noipa))

static volatile long sum;

KEPT void reached(long n) { sum += n; }

KEPT long in_frame(long n)
{
    char room[200];
    memset(room, (int)n, sizeof room);
    reached(n);
    return room[n & 63];
}

KEPT long in_odd_frame(long n)
{
    char *room = alloca(16 * (n & 7) + 40);
    memset(room, (int)n, 40);
    long found = in_frame(n) + room[n & 31];
    reached(n + 1);
    return found;
}

KEPT long recursive(long n)
{
    if (n == 0) {
        reached(100);
        return 1;
    }
    return recursive(n - 1) * 3 + n;
}

KEPT int compared(const void *a, const void *b)
{
    reached(200);
    return *(const int *)a - *(const int *)b;
}

KEPT void tail(long n) { reached(n * 2); }
KEPT void to_tail(long n) { sum++; tail(n + 1); }

int main(void)
{
    char line[64];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        int some[] = {3, 1, 2};
        for (long n = 0; n < 3; n++) sum += in_odd_frame(n);
        sum += recursive(6);
        qsort(some, 3, sizeof *some, compared);
        to_tail(7);
        printf("%ld\n", sum);
        fflush(stdout);
    }
    return 0;
}
