/* Signals come while functions are executed that are probed. A line says what is done:
   `timer N`: a leaf is called until N alarms have come, a thousand a second, whose handler calls a function, too;
   `jumps N`: the same, but the handler leaves by siglongjmp;
   `traps N`: a function is called N times, and each time the program traps by itself, by int3 and by ud2;
   `fault`: a load faults, and the handler waits for a line before it lets it be made again.
   With an argument its handlers of traps are for one signal each. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define PROBED __attribute__((noipa))

static volatile sig_atomic_t n_alarms, n_traps, n_illegal, n_bad;
static volatile long n_in_handler, n_calls;
static sigjmp_buf place;
static char *page;

/* Adds its arguments by way of the red zone, and of flags. */
PROBED long leaf(long a, long b);
__asm__(".text\n.globl leaf\n.type leaf, @function\nleaf:\n"
        "mov %rdi, -8(%rsp)\nmov %rsi, -128(%rsp)\nmov -8(%rsp), %rax\ncmp %rsi, %rdi\nsetb %cl\n"
        "add -128(%rsp), %rax\nmovzbl %cl, %ecx\nadd %rcx, %rax\nret\n.size leaf, . - leaf\n");

PROBED long in_handler(long n) { return n + 1; }

/* One load, of three bytes: it is displaced by what is probed in front of it. */
PROBED long load(char *from);
__asm__(".text\n.globl load\n.type load, @function\nload:\nmovzbl (%rdi), %eax\nnop\nlea 1(%rax), %rax\nret\n"
        ".size load, . - load\n");

PROBED long trapped(long n) { return n * 5 + 3; }

static void on_alarm(int number)
{
    (void)number;
    n_in_handler = in_handler(n_in_handler);
    n_alarms++;
}

static void leave(int number)
{
    (void)number;
    n_alarms++;
    siglongjmp(place, 1);
}

static void on_trap(int number, siginfo_t *info, void *context)
{
    ucontext_t *frame = context;
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    n_bad += sigismember(&mask, SIGUSR1) != 1 || sigismember(&mask, number) != 1;
    if (number == SIGTRAP) {
        n_traps++;
        n_bad += info->si_code != SI_KERNEL;
    } else {
        n_illegal++;
        n_bad += info->si_code != ILL_ILLOPN || (long)info->si_addr != frame->uc_mcontext.gregs[REG_RIP];
        frame->uc_mcontext.gregs[REG_RIP] += 2;
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    char letter;
    (void)number, (void)context;
    n_bad += info->si_addr != page;
    if (write(1, "waits\n", 6) != 6) n_bad++;
    do
        if (read(0, &letter, 1) != 1) _exit(1);
    while (letter != '\n');
    mprotect(page, 4096, PROT_READ);
}

static void set(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(number, &action, NULL);
}

static int is_set(int number, void (*handler)(int, siginfo_t *, void *))
{
    struct sigaction action;
    sigaction(number, NULL, &action);
    return action.sa_sigaction == handler && action.sa_flags & SA_SIGINFO && sigismember(&action.sa_mask, SIGUSR1);
}

static void be_interrupted(long n)
{
    struct itimerval each = {{0, 1000}, {0, 1000}}, none = {{0, 0}, {0, 0}};
    long n_wrong = 0;
    n_alarms = 0, n_in_handler = 0, n_calls = 0;
    setitimer(ITIMER_REAL, &each, NULL);
    for (; n_alarms < n; n_calls++) n_wrong += leaf(n_calls, 1000) != n_calls + 1000 + (n_calls < 1000);
    setitimer(ITIMER_REAL, &none, NULL);
    /* None comes any more. */
    n_wrong += n_in_handler != n_alarms;
    printf("%ld %ld %ld\n", n_wrong, n_calls, n_in_handler);
}

static void be_left(long n)
{
    struct itimerval each = {{0, 1000}, {0, 1000}}, none = {{0, 0}, {0, 0}};
    volatile long n_wrong = 0;
    n_alarms = 0, n_calls = 0;
    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &each, NULL);
    sigsetjmp(place, 1);
    while (n_alarms < n) {
        n_calls++;
        n_wrong += leaf(n_calls, 1000) != n_calls + 1000 + (n_calls < 1000);
    }
    setitimer(ITIMER_REAL, &none, NULL);
    signal(SIGALRM, on_alarm);
    printf("%ld %ld %d\n", n_wrong, n_calls, n_alarms);
}

static void trap(long n)
{
    long sum = 0;
    n_traps = n_illegal = 0;
    for (long at = 0; at < n; at++) {
        sum += trapped(at);
        __asm__ volatile("int3\n.byte 0x0f, 0x0b" ::: "memory");
    }
    printf("%ld %d %d %d\n", sum, n_traps, n_illegal, n_bad);
}

int main(int argc, char **argv)
{
    char line[64];
    (void)argv;
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *page = 41;
    signal(SIGALRM, on_alarm);
    set(SIGTRAP, on_trap, argc > 1 ? (int)SA_RESETHAND : 0);
    set(SIGILL, on_trap, argc > 1 ? (int)SA_RESETHAND : 0);
    set(SIGSEGV, on_fault, 0);
    /* What follows a line is a handler's. */
    setvbuf(stdin, NULL, _IONBF, 0);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        if (!strncmp(line, "timer ", 6)) be_interrupted(atol(line + 6));
        else if (!strncmp(line, "jumps ", 6)) be_left(atol(line + 6));
        else if (!strncmp(line, "traps ", 6)) trap(atol(line + 6));
        else if (!strcmp(line, "own\n")) printf("%d %d\n", is_set(SIGTRAP, on_trap), is_set(SIGILL, on_trap));
        else if (!strcmp(line, "fault\n")) {
            mprotect(page, 4096, PROT_NONE);
            printf("%ld %d\n", load(page), n_bad);
        }
        fflush(stdout);
    }
    return 0;
}
