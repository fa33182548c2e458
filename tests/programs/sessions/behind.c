/* A loop that comes to an instruction from the one in front of it, and by a jump, while signals come whose handler runs the loop, too.
 *
 * Arguments: a file; how many calls; and microseconds between signals, 0: there are none. Writes what the calls of main come to, and how
 * many there were of the handler.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

long work(long turns, long who);
__asm__(".text\n.globl work\n.type work, @function\n"
        "work:\n"
        "    xor %eax, %eax\n"
        "1:  add $3, %rax\n"
        "2:  lea 1(%rax, %rax), %rax\n"
        "    and $0xffff, %eax\n"
        "    dec %rdi\n"
        "    jz 3f\n"
        "    test $1, %dil\n"
        "    jnz 2b\n"
        "    jmp 1b\n"
        "3:  ret\n"
        ".size work, . - work\n");

static volatile long n_handled;

static void handle(int signal)
{
    (void)signal;
    n_handled++;
    work(5, 1);
}

int main(int argc, char **argv)
{
    (void)argc;
    long n_calls = atol(argv[2]), often_us = atol(argv[3]), total = 0;
    struct sigaction action = {.sa_handler = handle};
    struct itimerval often = {{0, often_us}, {0, often_us}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (long number = 1; number <= n_calls; number++)
        total += work(number % 16 + 1, 0);
    setitimer(ITIMER_REAL, &never, NULL);
    FILE *file = fopen(argv[1], "w");
    fprintf(file, "%ld %ld\n", total, n_handled);
    return fclose(file);
}
