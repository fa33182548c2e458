/* what: the program sets the trap flag and counts the SIGTRAPs of its own instructions
 * build: -O1 -fno-stack-protector
 * differs: the trap flag is not followed into the code cache
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

static volatile int steps;
static void handler(int number, siginfo_t *info, void *opaque)
{
    (void)number, (void)info, (void)opaque;
    steps++;
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, NULL);
    __asm__ volatile("sub $128, %%rsp\n pushf\n orl $0x100, (%%rsp)\n popf\n"
                     "nop\n nop\n mov $3, %%ecx\n 1: dec %%ecx\n jnz 1b\n"
                     "pushf\n andl $~0x100, (%%rsp)\n popf\n add $128, %%rsp\n" ::
                         : "rcx", "memory", "cc");
    printf("%d steps\n", steps);
    return 0;
}
