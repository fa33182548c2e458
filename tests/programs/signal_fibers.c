/* what: alarms all the time in two threads that switch between stacks, whose returns lead elsewhere than their calls
 * build: -O1 -fno-inline -pthread -static
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

enum { FIBERS = 4, ALARMS = 200, MOST_TURNS = 200000000 };

struct group {
    void *places[FIBERS + 1];              /* the last one is the thread's own */
    unsigned long turns[FIBERS];
    _Alignas(16) char stacks[FIBERS][16384];
};

static struct group groups[2];
static __thread struct group *own;
static volatile sig_atomic_t alarms;

/* Saves the callee-saved registers, swaps the stack pointer, returns on the other stack. */
void switch_stack(void **from, void **to);
__asm__("switch_stack:\n push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n mov %rsp, (%rdi)\n"
        "mov (%rsi), %rsp\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n");

static void on_alarm(int number)
{
    (void)number;
    alarms++;
}

static void give_up(int who, int depth)
{
    if (depth == 0)
        switch_stack(&own->places[who], &own->places[who + 1]);
    else
        give_up(who, depth - 1);
    own->turns[who]++;
}

static void fiber(int who)
{
    for (;;)
        give_up(who, who);
}
static void fiber_0(void) { fiber(0); }
static void fiber_1(void) { fiber(1); }
static void fiber_2(void) { fiber(2); }
static void fiber_3(void) { fiber(3); }

static void *run(void *argument)
{
    static void (*const fibers[FIBERS])(void) = {fiber_0, fiber_1, fiber_2, fiber_3};
    own = argument;
    for (int i = 0; i < FIBERS; i++) {
        void **top = (void **)(own->stacks[i] + sizeof own->stacks[i]) - 2;
        *top = (void *)fibers[i];
        own->places[i] = top - 6;
    }
    unsigned long turns = 0;
    for (; (alarms < ALARMS || turns < 1000) && turns < MOST_TURNS; turns++)
        switch_stack(&own->places[FIBERS], &own->places[0]);
    /* Each fiber has come back from all calls of all turns but the last. */
    for (int i = 0; i < FIBERS; i++)
        if (own->turns[i] != (turns - 1) * (i + 1))
            printf("fiber %d: %lu of %lu\n", i, own->turns[i], (turns - 1) * (i + 1));
    return NULL;
}

int main(void)
{
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    pthread_t other;
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_create(&other, NULL, run, &groups[1]);
    run(&groups[0]);
    pthread_join(other, NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%s\n", alarms >= ALARMS ? "alarms came" : "hardly any alarms");
    return 0;
}
