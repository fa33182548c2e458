/* what: alignment checks on all the time: loops, branches that go another way seldom, calls, jump tables, code that changes, far libraries, signals
 * build: -O1 -fno-stack-protector -no-pie -Wl,-z,now
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "note.h"

typedef long (*function)(long);

static char bytes[64] __attribute__((aligned(64)));
static sigjmp_buf back;
static volatile long n_signals;

static void set_flag(void)
{
    __asm__ volatile("sub $128, %%rsp\n pushfq\n orl $0x40000, (%%rsp)\n popfq\n add $128, %%rsp" ::: "cc", "memory");
}

static void clear_flag(void)
{
    __asm__ volatile("sub $128, %%rsp\n pushfq\n andl $~0x40000, (%%rsp)\n popfq\n add $128, %%rsp" ::: "cc", "memory");
}

static void count(int number)
{
    (void)number;
    n_signals++;
}

static void fault(int number, siginfo_t *info, void *opaque)
{
    (void)number;
    clear_flag();
    greg_t *registers = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    note("fault", info->si_code);
    note("  trap", registers[REG_TRAPNO]);
    note("  rax", registers[REG_RAX]);
    siglongjmp(back, 1);
}

__attribute__((noinline)) static long add(long x) { return x + 1; }
__attribute__((noinline)) static long triple(long x) { return x * 3; }
__attribute__((noinline)) static long flip(long x) { return x ^ 5; }
__attribute__((noinline)) static long less(long x) { return x - 7; }
__attribute__((noinline)) static long fibonacci(long n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

/* So many turns between two that go the other way: paths tell them in one byte, in three, and by the dispatcher. */
__attribute__((noinline)) static long seldom(long turns, long rounds)
{
    long sum = 0;
    for (long round = 0; round < rounds; round++) {
        for (long i = 0; i < turns; i++)
            __asm__ volatile("" : "+r"(sum));
        sum += round;
    }
    return sum;
}

__attribute__((noinline)) static long all_ways(void)
{
    static const function functions[] = {add, triple, flip, less};
    long sum = 0;
    unsigned state = 1;
    for (int i = 0; i < 5000; i++) {
        state = state * 1103515245 + 12345;
        sum = functions[state >> 16 & 3](sum);
        if (state & 0x80000)
            sum += i;
        switch (state >> 20 & 7) {
        case 0: sum += 2; break;
        case 1: sum ^= 9; break;
        case 2: sum *= 5; break;
        case 3: sum -= 3; break;
        case 4: sum = ~sum; break;
        case 5: sum += 77; break;
        case 6: sum ^= sum << 3; break;
        default: sum--;
        }
        if ((i & 255) == 0)
            syscall(SYS_getppid);
    }
    return sum;
}

/* Code that the program may write: at an odd address, changed between two calls. */
static long changing(unsigned char *code)
{
    static const unsigned char add_one[] = {0x90, 0x48, 0x8d, 0x47, 0x01, 0xc3};   /* nop; lea rax, [rdi + 1]; ret */
    long sum = 0;
    memcpy(code, add_one, sizeof add_one);
    set_flag();
    for (int i = 0; i < 200; i++) {
        code[4] = (unsigned char)(i / 10);
        sum = ((function)(uintptr_t)code)(sum);
    }
    clear_flag();
    return sum;
}

int main(void)
{
    struct sigaction action = {.sa_handler = count};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_sigaction = fault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, NULL);
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    set_flag();
    long sum = all_ways();
    clear_flag();
    note("all ways", sum);
    set_flag();
    sum = fibonacci(15);
    clear_flag();
    note("fibonacci", sum);
    set_flag();
    sum = seldom(3, 200) + seldom(300, 20) + seldom(70000, 3);
    clear_flag();
    note("seldom", sum);
    note("changing", changing(code + 1));
    for (int i = 0; i < 5; i++) {
        set_flag();
        raise(SIGUSR1);
        getppid();
        clear_flag();
    }
    note("signals", n_signals);
    for (volatile int i = 0; i < 5; i++) {
        if (sigsetjmp(back, 1) == 0) {
            set_flag();
            __asm__ volatile("mov %0, %%eax\n mov %1, 3(%2)" ::"r"((int)i), "r"((int)sum), "r"(bytes) : "eax", "memory");
        }
    }
    return 0;
}
