/* A function that is called while the program steps through itself: each trap's registers are added up.
 *
 * Argument: the file into which goes what all of it comes to.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>

extern char stepped_function[], stepped_function_end[];
static volatile unsigned long n_traps, n_inside, sum;

static void handle(int signal_number, siginfo_t *info, void *opaque)
{
    const greg_t *machine = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    (void)signal_number;
    (void)info;
    char *pc = (char *)machine[REG_RIP];
    n_traps++;
    if (pc >= stepped_function && pc < stepped_function_end) {
        n_inside++;
        for (int number = 0; number < 3; number++)
            sum = sum * 31 + (unsigned long)machine[(int[]){REG_RDI, REG_RCX, REG_RDX}[number]];
        sum = sum * 31 + (unsigned long)(pc - stepped_function);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    for (unsigned long number = 0; number < 20; number++)
        __asm__ volatile("sub $128, %%rsp\n"
                         "mov %0, %%rdi\n xor %%ecx, %%ecx\n mov $7, %%edx\n"
                         "pushf\n orl $0x100, (%%rsp)\n popf\n"
                         "call stepped_function\n"
                         "pushf\n andl $~0x100, (%%rsp)\n popf\n"
                         "add $128, %%rsp\n"
                         :
                         : "r"(number)
                         : "rax", "rcx", "rdx", "rdi", "memory", "cc");
    FILE *file = fopen(argv[1], "w");
    fprintf(file, "%lu %lu %lu\n", n_traps, n_inside, sum);
    fclose(file);
}

__asm__(".globl stepped_function\n.type stepped_function, @function\n"
        "stepped_function:\n add %rdi, %rcx\n lea 1(%rcx), %rdx\n cmp $9, %rdx\n jb 1f\n sub $2, %rdx\n1: ret\n"
        ".globl stepped_function_end\nstepped_function_end:\n.size stepped_function, .-stepped_function\n");
