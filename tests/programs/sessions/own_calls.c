/* A library whose functions Python calls: so many turns, calls, system calls, and calls back. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) int take_step(int number)
{
    return number % 3 == 0 ? number / 3 : number + 1;
}

/* Calls take_step `turns` times. */
int run(int turns)
{
    int sum = 0;
    for (int turn = 0; turn < turns; turn++)
        sum += take_step(turn);
    return sum;
}

/* Calls back `turns` times. */
int back(int (*call)(int), int turns)
{
    int sum = 0;
    for (int turn = 0; turn < turns; turn++)
        sum += call(turn);
    return sum;
}

/* What the C library does for it is its own. */
int lengths(int turns)
{
    int sum = 0;
    for (int turn = 0; turn < turns; turn++) {
        char *text = malloc(64 + turn);
        memset(text, 'a', 63);
        text[63] = 0;
        sum += (int)strlen(text);
        free(text);
    }
    return sum;
}

int parents(int turns)
{
    int sum = 0;
    for (int turn = 0; turn < turns; turn++)
        sum += getppid() > 0;
    return sum;
}
