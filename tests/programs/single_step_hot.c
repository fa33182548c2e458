/* what: a program runs a loop until it is hot, then steps through it: traps find the starts of blocks that follow from others
 * build: -O1 -fno-stack-protector -fcf-protection=none
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

enum { HOT_TURNS = 100000, STEPPED_TURNS = 40, TRAP_FLAG = 0x100 };

extern char loop_start[], loop_end[];
static long n_inside, n_elsewhere;

static void handler(int signal_number, siginfo_t *info, void *opaque)
{
    const mcontext_t *machine = &((ucontext_t *)opaque)->uc_mcontext;
    char *pc = (char *)machine->gregs[REG_RIP];
    (void)signal_number, (void)info;
    if (pc >= loop_start && pc < loop_end)
        n_inside++;
    else
        n_elsewhere++;
}

/* Blocks that begin with what sets the flags for their branches: these follow from the block in front of them, and nothing in
 * front of their first instruction counts that they are executed. `flags` are set before the loop. */
__attribute__((noinline)) static long run(long turns, long flags)
{
    long sum = 0;
    __asm__ volatile("sub $128, %%rsp\n"
                     "pushf\n or %2, (%%rsp)\n popf\n"
                     "loop_start:\n"
                     "sub $1, %1\n js 3f\n"
                     "test $7, %b1\n jz 1f\n"
                     "test $1, %b1\n jz 2f\n"
                     "add $1, %0\n jmp loop_start\n"
                     "1: add $5, %0\n jmp loop_start\n"
                     "2: add $3, %0\n jmp loop_start\n"
                     "3:\n"
                     "loop_end:\n"
                     "pushf\n andl $~0x100, (%%rsp)\n popf\n nop\n"
                     "add $128, %%rsp\n"
                     : "+r"(sum), "+q"(turns)
                     : "r"(flags)
                     : "memory", "cc");
    return sum;
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, NULL);
    printf("hot: %ld\n", run(HOT_TURNS, 0));
    for (int turn = 0; turn < 3; turn++)
        printf("stepped: %ld\n", run(STEPPED_TURNS, TRAP_FLAG));
    printf("%ld steps, %ld elsewhere\n", n_inside, n_elsewhere);
    return 0;
}
