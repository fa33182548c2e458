/* what: a program that steps through itself meets a timer's signals, a branch to nowhere, code that its handler rewrites,
 *       a handler that is left by a jump; and a breakpoint's handler sees the flags in front of it
 * build: -O1 -fno-stack-protector -fcf-protection=none
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include "note.h"

#define STEP_ON "sub $128, %%rsp\n pushf\n orl $0x100, (%%rsp)\n popf\n"
#define STEP_OFF "pushf\n andl $~0x100, (%%rsp)\n popf\n nop\n add $128, %%rsp\n"
#define CHANGED "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc"

static volatile long traps, alarms, steps_shown, zero_flags;
static char *way_back;
static unsigned char *writable;
static sigjmp_buf out;

static greg_t *registers_of(void *opaque)
{
    return ((ucontext_t *)opaque)->uc_mcontext.gregs;
}

static void on_trap(int number, siginfo_t *info, void *opaque)
{
    (void)number, (void)info;
    traps++;
    zero_flags += (registers_of(opaque)[REG_EFL] & 0x40) != 0;
    if (writable && registers_of(opaque)[REG_RIP] == (greg_t)writable)
        memcpy(writable, "\x66\x90", 2);
}

static void on_fault(int number, siginfo_t *info, void *opaque)
{
    (void)number, (void)info;
    steps_shown += (registers_of(opaque)[REG_EFL] & 0x100) != 0;
    registers_of(opaque)[REG_RIP] = (greg_t)way_back;
}

static void on_alarm(int number, siginfo_t *info, void *opaque)
{
    (void)number, (void)info, (void)opaque;
    alarms++;
}

static void on_user(int number, siginfo_t *info, void *opaque)
{
    (void)number, (void)info, (void)opaque;
    siglongjmp(out, 1);
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(number, &action, NULL);
}

static void show(const char *what)
{
    note(what, traps);
    traps = 0;
}

__attribute__((noinline)) static void callee(void)
{
    __asm__ volatile("");
}

static void among_signals(void)
{
    struct itimerval timer = {{0, 2000}, {0, 2000}}, off = {{0, 0}, {0, 0}};
    long turns = 500;
    setitimer(ITIMER_REAL, &timer, NULL);
    __asm__ volatile(STEP_ON "1: lea 1(%%rax), %%rax\n jmp 2f\n .p2align 4\n 2: call 3f\n dec %0\n jnz 1b\n jmp 4f\n"
                             "3: ret\n 4:" STEP_OFF
                     : "+r"(turns)::"rax", "memory", "cc");
    setitimer(ITIMER_REAL, &off, NULL);
    show("among signals");
}

static void to_nowhere(void)
{
    __asm__ volatile(STEP_ON "lea 1f(%%rip), %%rax\n mov %%rax, %0\n xor %%eax, %%eax\n jmp *%%rax\n"
                             "1: nop\n nop\n" STEP_OFF
                     : "=m"(way_back)::CHANGED);
    note("faults with the flag", steps_shown);
    show("to nowhere and back");
}

static void through_changing_code(void)
{
    writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(writable, "\x90\x90\x90\x90\xc3", 5);
    ((void (*)(void))writable)();
    __asm__ volatile(STEP_ON "call *%0\n" STEP_OFF ::"r"(writable) : CHANGED);
    show("through code that changes");
}

static void out_of_a_handler(void)
{
    long pid = getpid(), result;
    if (sigsetjmp(out, 0) == 0)
        __asm__ volatile(STEP_ON "syscall\n ud2" : "=a"(result) : "a"(SYS_kill), "D"(pid), "S"(SIGUSR1) : "rcx", "r11", "memory", "cc");
    traps = 0;
    __asm__ volatile(STEP_ON "nop\n nop\n" STEP_OFF ::: "memory", "cc");
    show("after a handler was left");
}

static void flags_at_a_breakpoint(void)
{
    for (int i = 0; i < 10; i++)
        __asm__ volatile("sub $128, %%rsp\n xor %%eax, %%eax\n jmp 1f\n 1: int3\n sub $16, %%rsp\n call *%0\n add $144, %%rsp"
                         ::"r"(callee) : CHANGED);
    note("breakpoints with the zero flag", zero_flags);
    show("breakpoints");
}

int main(void)
{
    handle(SIGTRAP, on_trap, 0);
    handle(SIGSEGV, on_fault, 0);
    handle(SIGALRM, on_alarm, SA_RESTART);
    handle(SIGUSR1, on_user, SA_NODEFER);
    zero_flags = 0;
    flags_at_a_breakpoint();
    among_signals();
    to_nowhere();
    through_changing_code();
    out_of_a_handler();
    return 0;
}
