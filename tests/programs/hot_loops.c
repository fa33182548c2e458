/* what: hot loops of many shapes: of one block and of several, with and without free registers, left by calls, faults, signals, jumps
 * build: -O1 -pthread
 * traits: oracle
 *
 * With two numbers it runs every loop so many times with so many turns, while a timer's handler and a second thread do the same, and prints
 * how often each head of a loop was executed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>

typedef unsigned long word;

/* A loop in assembly, which is to have `turns` turns from its label on: rax is what it works on, rcx the turns that are left, rdx is free. */
#define LOOP(name, code)                                                                                               \
    __attribute__((noipa)) static word run_##name(word turns)                                                          \
    {                                                                                                                  \
        word sum = 0;                                                                                                  \
        __asm__ volatile(code : "+a"(sum), "+c"(turns) : : "rdx", "rsi", "r8", "r10", "r11", "cc", "memory");          \
        return sum;                                                                                                    \
    }
#define HEAD(name) ".globl head_" #name "\nhead_" #name ": "

word table[64];

/* One block. */
LOOP(one, HEAD(one) "add %1, %0; xor $5, %0; dec %1; jnz head_one")
LOOP(named, HEAD(named) "lea 3(%1), %%r10; mov %%r10, %%r11; add %%r11, %0; dec %1; jnz head_named")
LOOP(index_named, "mov $7, %%r10;" HEAD(index_named) "add %%r10, %0; dec %1; jnz head_index_named")
LOOP(target_named, "mov $7, %%r11;" HEAD(target_named) "add %%r11, %0; dec %1; jnz head_target_named")
LOOP(by_count, HEAD(by_count) "lea 1(%0, %1), %0; loop head_by_count")
LOOP(carried, "stc; " HEAD(carried) "adc %1, %0; lea -1(%1), %1; jrcxz 1f; jmp head_carried; 1: adc $0, %0")
LOOP(stored, "lea table(%%rip), %%rsi;" HEAD(stored) "mov %1, %%rdx; and $63, %%rdx; mov %0, (%%rsi,%%rdx,8); inc %0; dec %1; jnz head_stored")
LOOP(relative, HEAD(relative) "add %1, table+8(%%rip); mov table+8(%%rip), %0; dec %1; jnz head_relative")
LOOP(thread_local, HEAD(thread_local) "xor %%fs:0x28, %0; xor %%fs:0x28, %0; inc %0; dec %1; jnz head_thread_local")
/* Two blocks, one way or the other; and two of which the second one leads back. */
LOOP(detour, HEAD(detour) "add %1, %0; test $7, %1; jnz 2f; xor $9, %0; 2: dec %1; jnz head_detour")
LOOP(either, HEAD(either) "test $1, %1; jz 2f; add %1, %0; jmp 3f; 2: xor %1, %0; 3: dec %1; jnz head_either")
LOOP(from_top, "inc %1; jmp head_from_top; .p2align 5;" HEAD(from_top) "dec %1; jz 2f; add %1, %0; jmp head_from_top; 2:")
LOOP(top_named, "inc %1; jmp head_top_named; .p2align 5;" HEAD(top_named) "dec %1; jz 2f; mov %1, %%r10; add %%r10, %0;"
     "jmp head_top_named; 2:")
/* Entered in the middle, at the second block. */
LOOP(middle, "inc %1; jmp 2f; " HEAD(middle) "add %1, %0; test $3, %1; jz 2f; xor $3, %0; 2: dec %1; jnz head_middle")
/* A loop in a loop; each turn of the outer one is one of the label. */
LOOP(outer, HEAD(outer) "mov $3, %%rdx; 1: add %%rdx, %0; dec %%rdx; jnz 1b; dec %1; jnz head_outer")
LOOP(shared, "mov %1, %%rdx; inc %%rdx; jmp 3f;" HEAD(shared) "add %1, %0; 3: dec %%rdx; jz 4f; test $7, %%rdx; jnz head_shared;"
     "xor $1, %0; jmp head_shared; 4:")
/* Left now and then: by a call, by a call through a pointer, by a fault whose handler goes on behind the instruction. */
LOOP(calling, HEAD(calling) "test $7, %1; jnz 2f; sub $128, %%rsp; call callee; add $128, %%rsp; 2: dec %1; jnz head_calling")
LOOP(pointing, "lea callee(%%rip), %%rsi;" HEAD(pointing) "add %1, %0; test $7, %1; jnz 2f; sub $128, %%rsp; call *%%rsi;"
     "add $128, %%rsp; 2: dec %1; jnz head_pointing")
LOOP(faulting, HEAD(faulting) "mov %1, %%rdx; and $15, %%rdx; lea table(%%rip), %%rsi; cmovz %%rdx, %%rsi; inc %0;"
     ".globl fault_at, fault_behind\nfault_at: mov (%%rsi), %%r8; fault_behind: dec %1; jnz head_faulting")
__asm__("callee: add $2, %rax; ret");
extern char fault_at[], fault_behind[];

static word run_longer(word turns)
{
    /* A block that is more than the translator takes at once. */
    word sum = 0;
    __asm__ volatile(HEAD(longer) ".rept 300; add %1, %0; ror $1, %0; .endr; dec %1; jnz head_longer"
                     : "+a"(sum), "+c"(turns) : : "cc");
    return sum;
}

#define EACH(do)                                                                                                       \
    do(one) do(named) do(index_named) do(target_named) do(by_count) do(carried) do(stored) do(relative)                \
    do(thread_local) do(detour) do(either) do(from_top) do(top_named) do(middle) do(outer) do(shared) do(calling)      \
    do(pointing) do(faulting) do(longer)

#define NUMBER(name) number_##name,
enum { EACH(NUMBER) N_LOOPS };
#define RUN(name) run_##name,
static word (*const loops[])(word) = { EACH(RUN) };
#define NAME(name) #name,
static const char *const names[] = { EACH(NAME) };
/* A loop that is entered at its top or in its middle comes to its label once more or less. */
static word executed(int number, word turns)
{
    return turns + (number == number_from_top || number == number_top_named);
}

static atomic_ulong heads[N_LOOPS];

static word run(int number, word turns)
{
    heads[number] += executed(number, turns);
    return loops[number](turns);
}

static void skip_fault(int signal, siginfo_t *info, void *context)
{
    greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    (void)info;
    if (*pc != (greg_t)(uintptr_t)fault_at)
        _exit(signal);
    *pc = (greg_t)(uintptr_t)fault_behind;
}

static volatile int ticks;
static sigjmp_buf back;
static volatile sig_atomic_t may_jump;

static void tick(int signal)
{
    (void)signal;
    int number = ticks++ % N_LOOPS;
    run(number, 20);
    if (may_jump) {
        may_jump = 0;
        siglongjmp(back, 1);
    }
}

static void *work(void *turns)
{
    for (int i = 0; i < N_LOOPS; i++)
        run(i, *(word *)turns);
    return NULL;
}

/* A loop without an end, which the timer's handler jumps out of. */
static void be_interrupted(void)
{
    if (sigsetjmp(back, 1) == 0) {
        may_jump = 1;
        run_one(0);
    }
}

int main(int argc, char **argv)
{
    struct sigaction fault = { .sa_sigaction = skip_fault, .sa_flags = SA_SIGINFO };
    sigaddset(&fault.sa_mask, SIGALRM);
    sigaction(SIGSEGV, &fault, NULL);
    if (argc < 3) {
        word sum = 0;
        for (word turns = 1; turns < 60; turns += 29)
            for (int i = 0; i < N_LOOPS; i++)
                sum = sum * 31 + run(i, turns);
        printf("%lx\n", sum);
        return 0;
    }
    struct sigaction handler = { .sa_handler = tick };
    struct itimerval interval = { .it_interval.tv_usec = 700, .it_value.tv_usec = 700 }, none = { 0 };
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigaction(SIGALRM, &handler, NULL);
    word times = strtoul(argv[1], NULL, 10), turns = strtoul(argv[2], NULL, 10);
    setitimer(ITIMER_REAL, &interval, NULL);
    for (word i = 0; i < times; i++) {
        pthread_t thread;
        pthread_sigmask(SIG_BLOCK, &alarms, NULL);
        pthread_create(&thread, NULL, work, &turns);
        pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
        for (int number = 0; number < N_LOOPS; number++)
            run(number, turns);
        be_interrupted();
        pthread_join(thread, NULL);
    }
    setitimer(ITIMER_REAL, &none, NULL);
    /* How often the endless one went round nobody knows. */
    for (int number = 1; number < N_LOOPS; number++)
        printf("%s %lu\n", names[number], heads[number]);
    return 0;
}
