/* Runs functions whose code is patched, with all registers and the stack under control, and steps through them.

   A thread that traps at an address of the table goes on at the address beside it. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* rax, rcx, rdx, rbx, (rsp), rbp, rsi, rdi, r8 to r15, rflags. */
struct registers { uint64_t word[17]; };

#define STACK_BYTES 16384
#define MAX_PLACES 4096
#define MAX_STEPS 400000
#define TRAP_FLAG 0x100

static struct { uint64_t at, to; } places[MAX_PLACES];
static int n_places;
static uint64_t n_traps;
static uint64_t *steps;
static uint64_t n_steps;
static char stack[STACK_BYTES] __attribute__((aligned(64)));
static char signal_stack[65536];

void run(void *function, struct registers *in, struct registers *out, char *top);

__asm__(
    ".globl run\n"
    "run:\n"
    "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
    "mov %rsp, saved_stack(%rip)\n"
    "mov %rdx, saved_out(%rip)\n"
    "mov %rdi, saved_function(%rip)\n"
    "mov %rcx, %rsp\n"
    "mov %rsi, %rax\n"
    "mov 8(%rax), %rcx; mov 16(%rax), %rdx; mov 24(%rax), %rbx\n"
    "mov 40(%rax), %rbp; mov 48(%rax), %rsi; mov 56(%rax), %rdi\n"
    "mov 64(%rax), %r8; mov 72(%rax), %r9; mov 80(%rax), %r10; mov 88(%rax), %r11\n"
    "mov 96(%rax), %r12; mov 104(%rax), %r13; mov 112(%rax), %r14; mov 120(%rax), %r15\n"
    "pushq 128(%rax)\n"
    "mov (%rax), %rax\n"
    "popfq\n"
    "call *saved_function(%rip)\n"
    "mov %rsp, saved_rsp(%rip)\n"
    "mov saved_stack(%rip), %rsp\n"
    "pushfq\n"
    "push %rax\n"
    "mov saved_out(%rip), %rax\n"
    "popq (%rax)\n"
    "popq 128(%rax)\n"
    "mov %rcx, 8(%rax); mov %rdx, 16(%rax); mov %rbx, 24(%rax)\n"
    "mov %rbp, 40(%rax); mov %rsi, 48(%rax); mov %rdi, 56(%rax)\n"
    "mov %r8, 64(%rax); mov %r9, 72(%rax); mov %r10, 80(%rax); mov %r11, 88(%rax)\n"
    "mov %r12, 96(%rax); mov %r13, 104(%rax); mov %r14, 112(%rax); mov %r15, 120(%rax)\n"
    "mov saved_rsp(%rip), %rcx\n"
    "mov %rcx, 32(%rax)\n"
    "pushfq; andq $~0x100, (%rsp); popfq\n"
    "cld\n"
    "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
    "ret\n"
    ".local saved_stack, saved_out, saved_function, saved_rsp\n"
    ".comm saved_stack, 8, 8\n"
    ".comm saved_out, 8, 8\n"
    ".comm saved_function, 8, 8\n"
    ".comm saved_rsp, 8, 8\n");

static void on_trap(int signal, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint64_t pc = registers[REG_RIP];
    if (signal == SIGTRAP && info->si_code == TRAP_TRACE) {
        if (n_steps < MAX_STEPS)
            steps[n_steps++] = pc;
        return;
    }
    if (signal == SIGTRAP)
        pc--;
    for (int i = 0; i < n_places; i++)
        if (places[i].at == pc) {
            registers[REG_RIP] = places[i].to;
            n_traps++;
            return;
        }
    abort();
}

void begin(void)
{
    stack_t where = {.ss_sp = signal_stack, .ss_size = sizeof signal_stack};
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigaltstack(&where, 0);
    sigaction(SIGTRAP, &action, 0);
    sigaction(SIGILL, &action, 0);
    steps = malloc(MAX_STEPS * sizeof *steps);
}

void set_places(uint64_t *pairs, int n)
{
    n_places = n;
    memcpy(places, pairs, n * sizeof places[0]);
    n_traps = 0;
}

uint64_t traps(void) { return n_traps; }

/* Runs `function`; what was left on the stack goes to `left`. */
void call(void *function, struct registers *in, struct registers *out, char *left)
{
    memset(stack, 0, sizeof stack);
    run(function, in, out, stack + STACK_BYTES - 1024);
    memcpy(left, stack, sizeof stack);
}

/* The same, step by step: the addresses of all instructions that ran, and how many. */
uint64_t step(void *function, struct registers *in, struct registers *out, uint64_t **trace)
{
    char left[STACK_BYTES];
    n_steps = 0;
    in->word[16] |= TRAP_FLAG;
    call(function, in, out, left);
    in->word[16] &= ~(uint64_t)TRAP_FLAG;
    *trace = steps;
    return n_steps;
}
