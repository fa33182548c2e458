/* what: the program sets the trap flag and notes where the SIGTRAPs of its own instructions find it
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

extern char stepped_start[], stepped_end[];
static long places[256];
static int n_places, n_elsewhere;
static long number = 5;

static void handler(int signal_number, siginfo_t *info, void *opaque)
{
    const mcontext_t *machine = &((ucontext_t *)opaque)->uc_mcontext;
    char *pc = (char *)machine->gregs[REG_RIP];
    (void)signal_number;
    if (info->si_addr != pc || info->si_code != TRAP_TRACE)
        printf("odd: address %d, code %d\n", info->si_addr == pc, info->si_code);
    if (pc < stepped_start || pc > stepped_end || n_places == 256)
        n_elsewhere++;
    else
        places[n_places++] = pc - stepped_start;
}

static void run(void)
{
    __asm__ volatile("sub $128, %%rsp\n"
                     "stepped_start:\n"
                     "pushf\n orl $0x100, (%%rsp)\n popf\n"
                     /* plain, then a loop whose branch is taken and not, then memory relative to rip */
                     "nop\n nop\n mov $3, %%ecx\n 1: dec %%ecx\n jnz 1b\n"
                     "mov %0, %%rax\n add %%rax, %0\n lea %0, %%rdx\n"
                     /* calls and returns, direct and not; a jump through a register */
                     "call 2f\n lea 2f(%%rip), %%rax\n call *%%rax\n lea 3f(%%rip), %%rax\n jmp *%%rax\n ud2\n"
                     "2: xor %%ecx, %%ecx\n ret\n"
                     /* popf in the middle, with the flag set before and after; system calls: getpid, and one that is handled */
                     "3: pushf\n popf\n add $1, %%rcx\n mov $39, %%eax\n syscall\n"
                     "mov $131, %%eax\n xor %%edi, %%edi\n xor %%esi, %%esi\n syscall\n"
                     /* a repeated instruction traps behind each turn */
                     "lea -64(%%rsp), %%rdi\n xor %%eax, %%eax\n mov $4, %%ecx\n rep stosb\n"
                     "pushf\n andl $~0x100, (%%rsp)\n popf\n nop\n"
                     "stepped_end:\n"
                     "add $128, %%rsp\n"
                     : "+m"(number)
                     :
                     : "rax", "rcx", "rdx", "rsi", "rdi", "r11", "memory", "cc");
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, NULL);
    for (int turn = 0; turn < 3; turn++)
        run();
    printf("%d steps, %d elsewhere, number %ld\n", n_places, n_elsewhere, number);
    for (int i = 0; i < n_places; i++)
        printf("%ld%c", places[i], i % 20 == 19 ? '\n' : ' ');
    return 0;
}
