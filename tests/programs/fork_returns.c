/* what: returns that often lead elsewhere than their calls, in a process, and by the same ways in its children and theirs
 */
#include "note.h"
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned sum;

/* Returns first to one of two places inside of itself, which no call announced. */
__attribute__((noinline)) static void go_round(unsigned which)
{
    __asm__ volatile("lea 1f(%%rip), %%rax\n lea 2f(%%rip), %%rdx\n test $1, %0\n cmovz %%rdx, %%rax\n push %%rax\n ret\n"
                     "1: incl %1\n 2: incl %1"
                     :
                     : "r"(which), "m"(sum)
                     : "rax", "rdx", "memory", "cc");
}

static unsigned count(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        go_round(i * i >> 2);
    return sum;
}

int main(void)
{
    note("first", count(50));
    for (int depth = 0; depth < 3; depth++) {
        pid_t child = fork();
        int status;
        if (child != 0) {
            waitpid(child, &status, 0);
            return WEXITSTATUS(status);
        }
        note("child", count(40));
    }
    return 0;
}
