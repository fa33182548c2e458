/* what: rt_sigreturn on frames made by hand: without vector state, with the legacy part only, odd flags, selectors, masks, stacks
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include "note.h"

/* As the kernel's struct rt_sigframe. */
struct frame {
    uintptr_t return_address;
    ucontext_t context; /* libc's is longer than the kernel's: only its start counts */
};

static struct frame frame __attribute__((aligned(64)));
static unsigned char legacy[512] __attribute__((aligned(64)));
static char other_stack[32768] __attribute__((aligned(64))), third_stack[32768] __attribute__((aligned(64)));
static sigjmp_buf back;
static uint64_t landed[20];

void go_by(void *context);
extern const char landing[];
/* Returns from a signal that never came, to `landing`, which notes registers, flags and xmm0, and goes back to go_by's caller. */
__asm__(".text\n.globl go_by, landing\n.type go_by, @function\n"
        "go_by: push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n mov %rsp, saved(%rip)\n"
        " mov %rdi, %rsp\n mov $15, %eax\n syscall\n ud2\n"
        "landing: mov %rax, landed(%rip)\n mov %rbx, landed+8(%rip)\n mov %rcx, landed+16(%rip)\n mov %r11, landed+24(%rip)\n"
        " mov %r15, landed+32(%rip)\n mov %rsp, landed+40(%rip)\n movq %xmm0, landed+48(%rip)\n"
        " mov saved(%rip), %rsp\n pushfq\n popq landed+56(%rip)\n cld\n mov %cs, %eax\n mov %rax, landed+64(%rip)\n"
        " mov %ss, %eax\n mov %rax, landed+72(%rip)\n stmxcsr landed+80(%rip)\n fnstcw landed+88(%rip)\n fninit\n"
        " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n"
        ".data\nsaved: .quad 0\n.text\n");

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("signal", number);
    note("  code", info->si_code);
    note("  address", (long)info->si_addr);
    note("  at the landing", (uintptr_t)registers[REG_RIP] == (uintptr_t)landing);
    note("  rbx", registers[REG_RBX]);
    siglongjmp(back, 1);
}

static void prepare(void)
{
    memset(&frame, 0, sizeof frame);
    greg_t *registers = frame.context.uc_mcontext.gregs;
    for (int i = 0; i < 16; i++)
        registers[i] = 0x1000 + i;
    registers[REG_RSP] = (greg_t)(uintptr_t)(other_stack + 16384);
    registers[REG_RIP] = (greg_t)(uintptr_t)landing;
    registers[REG_EFL] = 0x202;
    registers[REG_CSGSFS] = 0x33 | 0x2bl << 48;
    frame.context.uc_stack.ss_flags = SS_DISABLE;
}

static void go(const char *what)
{
    puts(what);
    fflush(stdout);
    memset(landed, 0, sizeof landed);
    if (sigsetjmp(back, 1) != 0)
        return;
    go_by(&frame.context);
    uintptr_t stack = landed[5] - (uintptr_t)other_stack < sizeof other_stack ? (uintptr_t)other_stack : (uintptr_t)third_stack;
    printf("rax %lx rbx %lx rcx %lx r11 %lx r15 %lx stack %ld\n", landed[0], landed[1], landed[2], landed[3], landed[4],
           (long)(landed[5] - stack));
    printf("xmm0 %lx flags %lx cs %lx ss %lx mxcsr %x word %x\n", landed[6], landed[7], landed[8], landed[9],
           (unsigned)landed[10], (unsigned)landed[11] & 0xffff);
}

static void make_legacy(void)
{
    memset(legacy, 0, sizeof legacy);
    legacy[0] = 0x7f;
    legacy[1] = 0x0b;
    *(uint32_t *)(legacy + 24) = 0x3f80;
    *(uint64_t *)(legacy + 160) = 0x1122334455667788;
    frame.context.uc_mcontext.fpregs = (fpregset_t)legacy;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    for (int round = 0; round < 2; round++) {
        prepare();
        go("without vector state");
        prepare();
        frame.context.uc_flags = 7;
        go("flags that promise more than there is");
        prepare();
        make_legacy();
        go("legacy vector state");
        prepare();
        make_legacy();
        frame.context.uc_flags = 1;
        go("legacy vector state, flags say more");
        prepare();
        make_legacy();
        *(uint32_t *)(legacy + 24) = 0xffffffff;
        go("reserved bits in mxcsr");
        prepare();
        frame.context.uc_mcontext.fpregs = (fpregset_t)(uintptr_t)(legacy + 8);
        make_legacy();
        frame.context.uc_mcontext.fpregs = (fpregset_t)(uintptr_t)(legacy + 8);
        go("legacy vector state, not aligned");
        prepare();
        frame.context.uc_mcontext.fpregs = (fpregset_t)(uintptr_t)0x8000000000000000;
        go("vector state at no address");
        prepare();
        frame.context.uc_mcontext.gregs[REG_EFL] = -1 & ~0x100 & ~0x40000;
        go("all flags");
        prepare();
        frame.context.uc_mcontext.gregs[REG_EFL] = 0;
        go("no flags");
        prepare();
        frame.context.uc_mcontext.gregs[REG_RSP] = (greg_t)(uintptr_t)(other_stack + 16381);
        go("odd stack pointer");
        prepare();
        sigaddset(&frame.context.uc_sigmask, SIGUSR1);
        sigaddset(&frame.context.uc_sigmask, SIGKILL);
        go("a mask");
        sigset_t mask;
        sigprocmask(SIG_BLOCK, NULL, &mask);
        printf("blocked %d %d\n", sigismember(&mask, SIGUSR1), sigismember(&mask, SIGKILL));
        prepare();
        frame.context.uc_stack = (stack_t){.ss_sp = other_stack, .ss_size = sizeof other_stack};
        frame.context.uc_mcontext.gregs[REG_RSP] = (greg_t)(uintptr_t)(third_stack + 16384);
        go("an alternate stack");
        stack_t stack;
        sigaltstack(NULL, &stack);
        printf("stack %d size %ld flags %d\n", stack.ss_sp == other_stack, (long)stack.ss_size, stack.ss_flags);
        sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
        prepare();
        frame.context.uc_mcontext.gregs[REG_CSGSFS] = 0x30 | 0x28l << 48;   /* privilege bits are forced */
        go("selectors without the user's privilege");
        sigprocmask(SIG_UNBLOCK, &mask, NULL);
    }
    return 0;
}
