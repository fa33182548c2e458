/* what: stacks switched by hand and by swapcontext: returns to addresses that calls on another stack announced
 * build: -O1 -fno-inline
 * traits: oracle
 */
#include <stdio.h>
#include <ucontext.h>

static ucontext_t main_context, contexts[3];
static char stacks[3][65536];
static char own_stack[3][65536];
static void *saved[4];
static int sum;
static volatile int forever = 1;

static int recurse(int n, int who)
{
    if (n == 0) {
        swapcontext(&contexts[who], &contexts[(who + 1) % 3]);
        return 1;
    }
    return recurse(n - 1, who) + 1;
}

static void run(int who)
{
    for (int i = 0; i < 20; i++)
        sum = sum * 3 + recurse(who + i % 4, who);
}

/* Saves the callee-saved registers, swaps the stack pointer, returns on the other stack. */
void switch_stack(void **from, void **to);
__asm__("switch_stack:\n push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n mov %rsp, (%rdi)\n"
        "mov (%rsi), %rsp\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n");

static void worker(int who)
{
    for (int i = 0; forever; i++) {
        sum += who * i;
        switch_stack(&saved[who], &saved[i % 2 ? 3 : (who + 1) % 3]);
    }
}
static void worker_0(void) { worker(0); }
static void worker_1(void) { worker(1); }
static void worker_2(void) { worker(2); }

int main(void)
{
    for (int i = 0; i < 3; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = sizeof stacks[i];
        contexts[i].uc_link = &main_context;
        makecontext(&contexts[i], (void (*)(void))run, 1, i);
    }
    swapcontext(&main_context, &contexts[0]);
    printf("%d\n", sum);
    void (*const workers[])(void) = {worker_0, worker_1, worker_2};
    for (int i = 0; i < 3; i++) {
        void **top = (void **)(own_stack[i] + sizeof own_stack[i]) - 3;
        *top = (void *)workers[i];
        saved[i] = top - 6;
    }
    for (int i = 0; i < 60; i++)
        switch_stack(&saved[3], &saved[i % 3]);
    printf("%d\n", sum);
    return 0;
}
