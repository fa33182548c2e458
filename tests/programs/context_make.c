/* what: makecontext with arguments and links, generators on their own stacks, swaps from callees, a thread's context taken further
 * build: -O1 -pthread -fno-inline
 * traits: oracle
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { TASKS = 6 };

static ucontext_t home, tasks[TASKS];
static char stacks[TASKS][32768] __attribute__((aligned(64)));
static int produced, current;

static void yield(int value)
{
    produced = value;
    swapcontext(&tasks[current], &home);
}

static void count(int from, int to, int step)
{
    for (int i = from; i < to; i += step)
        yield(i);
    produced = -1;
}

static void walk(int depth)
{
    if (depth == 0)
        return;
    walk(depth - 1);
    yield(100 + depth);
    walk(depth - 1);
}

static void tree(void)
{
    walk(4);
    produced = -1;
}

static void last(void) { produced = -2; }

int main(void)
{
    static int done[TASKS];
    for (int i = 0; i < TASKS; i++) {
        getcontext(&tasks[i]);
        tasks[i].uc_stack.ss_sp = stacks[i];
        tasks[i].uc_stack.ss_size = sizeof stacks[i];
        tasks[i].uc_link = i == 2 ? &tasks[5] : &home;
        if (i == 5)
            makecontext(&tasks[i], last, 0);
        else if (i % 2)
            makecontext(&tasks[i], tree, 0);
        else
            makecontext(&tasks[i], (void (*)(void))count, 3, i, 10 * (i + 1), i + 1);
    }
    for (int left = TASKS - 1; left > 0;)
        for (current = 0; current < TASKS - 1; current++) {
            if (done[current])
                continue;
            swapcontext(&home, &tasks[current]);
            printf("%d: %d\n", current, produced);
            if (produced < 0) {
                done[current] = 1;
                left--;
            }
        }
    return 0;
}
