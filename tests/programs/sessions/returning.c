/* Calls that return in all kinds of ways, and some that never do.
 *
 * Arguments: a file; and how many turns. Writes a line for each call of a function that returned: its name, argument and
 * result, in the order of returns, as the function itself finds out just before.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static FILE *told;
static jmp_buf way_out;
static ucontext_t outside, inside[2];
static char stacks[2][0x10000];

#define TOLD(name, argument, result) tell(#name, argument, result)

__attribute__((noinline)) static long tell(const char *name, long argument, long result)
{
    fprintf(told, "%s %ld %ld\n", name, argument, result);
    return result;
}

__attribute__((noinline)) long deep(long depth)
{
    long below = depth ? deep(depth - 1) : 0;
    return TOLD(deep, depth, below + depth);
}

/* Returns for odd numbers; else it is left by longjmp. */
__attribute__((noinline)) long maybe(long number)
{
    if (number % 2 == 0)
        longjmp(way_out, 1);
    return TOLD(maybe, number, 3 * number);
}

__attribute__((noinline)) long around(long number)
{
    return TOLD(around, number, maybe(number) + 1);
}

__attribute__((noinline)) long inner(long number) { return TOLD(inner, number, number + 7); }

/* Jumps to `inner`: both return at once. */
__attribute__((noinline)) long outer(long number) { return inner(number * 10); }

__attribute__((noinline)) long hop(long number)
{
    swapcontext(&inside[number % 2], &outside);
    return TOLD(hop, number, number * number);
}

static void run_hops(int which)
{
    for (long number = which; number < 20; number += 2)
        hop(number);
    for (;;)
        swapcontext(&inside[which], &outside);
}

__attribute__((noinline)) long parting(long number)
{
    fflush(told);
    pid_t child = fork();
    if (child)
        waitpid(child, NULL, 0);
    return TOLD(parting, number, child ? 1 : 2);
}

__attribute__((noinline)) const char *name_of(const char *path, long skip) { return path + skip; }

static long (*volatile functions[])(long) = {around, inner, deep, outer};

int main(int argc, char **argv)
{
    (void)argc;
    long turns = atol(argv[2]);
    volatile long total = 0;
    told = fopen(argv[1], "a");
    for (volatile long turn = 0; turn < turns; turn++) {
        if (setjmp(way_out) == 0)
            total += around(turn);
        total += outer(turn);
        total += functions[1 + turn % 3](turn % 50);
    }
    total += deep(3000);
    total += *name_of("/some/path", 5);
    for (int which = 0; which < 2; which++) {
        getcontext(&inside[which]);
        inside[which].uc_stack.ss_sp = stacks[which];
        inside[which].uc_stack.ss_size = sizeof stacks[which];
        makecontext(&inside[which], (void (*)(void))run_hops, 1, which);
    }
    for (long number = 0; number < 24; number++)
        swapcontext(&outside, &inside[number % 2]);
    long first = parting(5);
    if (first == 2) {
        total += deep(4);
        fclose(told);
        _exit(0);
    }
    fclose(told);
    return total == 0;
}
