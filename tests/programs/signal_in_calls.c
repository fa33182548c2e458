/* what: signals that system calls bring: vector and x87 registers in the frame and back, two at once, a frame that can't be written
 * build: -O1
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static const uint64_t MARK = 0x0123456789abcdef;
static char order[16];
static uint64_t interrupted_at;
static void *bad_stack;

/* What a handler finds in the registers, and in its frame: pi on the x87 stack, the mark in xmm9. */
static void tell(const char *what, const ucontext_t *context)
{
    struct {
        uint16_t control, status, tags;
        char rest[506];
    } __attribute__((aligned(16))) own;
    uint64_t low;
    __asm__ volatile("movq %%xmm9, %[low]\n fxsave %[own]" : [low] "=r"(low), [own] "=m"(own));
    const struct _libc_fpstate *state = context->uc_mcontext.fpregs;
    uint64_t shown, pi;
    memcpy(&shown, &state->_xmm[9], 8);
    memcpy(&pi, &state->_st[0], 8);
    printf("%s: begins with xmm9 %lx, x87 control %x tags %x; interrupted: mark %d, pi %d\n", what, low, own.control,
           own.tags & 0xff, shown == MARK, pi == 0xc90fdaa22168c235);
}

static void on_plain(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    tell("in a call", context);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    ucontext_t *interrupted = context;
    printf("%s instead, code %x, stack %d, ", strsignal(number), info->si_code,
           interrupted->uc_mcontext.gregs[REG_RSP] == (long)bad_stack);
    tell("no frame", context);
}

static void on_first(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    strcat(order, "first ");
}

static void on_second(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    strcat(order, "second ");
    interrupted_at = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
}

/* Sends itself a signal with these registers and on this stack. */
static void send(int number, void *stack)
{
    double pi;
    uint64_t after;
    long result = SYS_tgkill, process = getpid(), thread = gettid(), signal_number = number;
    __asm__ volatile("fldpi\n movq %[mark], %%xmm9\n mov %%rsp, %%rbx\n test %[stack], %[stack]\n cmovnz %[stack], %%rsp\n"
                     "syscall\n mov %%rbx, %%rsp\n fstpl %[pi]\n movq %%xmm9, %[after]"
                     : "+a"(result), [pi] "=m"(pi), [after] "=r"(after)
                     : [mark] "r"(MARK), [stack] "r"(stack), "D"(process), "S"(thread), "d"(signal_number)
                     : "rbx", "rcx", "r11", "xmm9", "st", "memory", "cc");
    printf("result %ld, pi %f, mark %d\n", result, pi, after == MARK);
}

static void send_two(int first, int second)
{
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, first);
    sigaddset(&both, second);
    sigprocmask(SIG_BLOCK, &both, NULL);
    sigaction(first, &(struct sigaction){.sa_sigaction = on_first, .sa_flags = SA_SIGINFO}, NULL);
    sigaction(second, &(struct sigaction){.sa_sigaction = on_second, .sa_flags = SA_SIGINFO}, NULL);
    raise(first);
    raise(second);
    order[0] = 0;
    sigprocmask(SIG_UNBLOCK, &both, NULL);
    printf("%d and %d: %sone at the other's start: %d\n", first, second, order, interrupted_at == (uint64_t)on_first);
}

int main(void)
{
    sigaction(SIGUSR1, &(struct sigaction){.sa_sigaction = on_plain, .sa_flags = SA_SIGINFO}, NULL);
    for (int i = 0; i < 3; i++)
        send(SIGUSR1, NULL);

    static char other_stack[1 << 16];
    sigaltstack(&(stack_t){.ss_sp = other_stack, .ss_size = sizeof other_stack}, NULL);
    sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK}, NULL);
    bad_stack = (char *)mmap(NULL, 0x10000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 0x8000;
    send(SIGUSR1, bad_stack);

    const int pairs[][2] = {{SIGHUP, SIGUSR2}, {SIGHUP, SIGBUS}, {SIGBUS, SIGSEGV}, {SIGSEGV, SIGBUS}};
    for (int i = 0; i < 4; i++)
        send_two(pairs[i][0], pairs[i][1]);
    return 0;
}
