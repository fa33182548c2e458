/* Answers each number that it reads by a sum: an outer call with two inner ones, of which the first may jump out of it all.
   What it prints is what events of probes must say. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static jmp_buf out;
static volatile long sum;

__attribute__((noinline)) void note(const char *text)
{
    sum += text[0];
}

__attribute__((noinline)) long inner(long n, long by)
{
    if (n < 0)
        longjmp(out, 1);
    for (volatile int turn = 0; turn < 2000; turn++)
        sum += turn;
    return n * by;
}

__attribute__((noinline)) long outer(long n)
{
    return inner(n, 2) + inner(n, 3);
}

__attribute__((noinline)) long answer(long n)
{
    if (setjmp(out))
        return -1;
    return outer(n);
}

int main(void)
{
    char line[64];
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        note(line);
        printf("%ld\n", answer(atol(line)));
        fflush(stdout);
    }
    return 0;
}
