/* what: signals and faults come to a thread that is followed no further, and to one that it makes, as often as they are sent
 * build: -O1 -pthread -fno-pie -no-pie
 * lost: released_threads
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTES = 8192, STACK_BYTES = 1 << 16, SYS32_GETPID = 20, TIMES = 5 };
static struct { unsigned offset; unsigned short selector; } __attribute__((packed)) place;
static __thread struct { int sent, nested, faults, aside, blocked; } seen;
static __thread char *alternate;

static int is_blocked(int number)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    return sigismember(&mask, number);
}

static void on_sent(int number)
{
    seen.sent++;
    seen.blocked += is_blocked(number) && !is_blocked(SIGUSR2);
    pthread_kill(pthread_self(), SIGUSR2);
}

static void on_nested(int number)
{
    char here;
    (void)number;
    seen.nested++;
    seen.aside += alternate && &here >= alternate && &here < alternate + STACK_BYTES;
}

static void on_fault(int number, siginfo_t *info, void *opaque)
{
    (void)number;
    seen.faults += info->si_addr == (void *)16;
    /* Behind the access, which is two bytes long. */
    ((ucontext_t *)opaque)->uc_mcontext.gregs[REG_RIP] += 2;
}

/* A system call of 32-bit code: who makes it is followed no further. */
static int be_left(void)
{
    /* int 0x80; dec eax; inc eax; retf */
    static const char code[] = "\xcd\x80\x48\x40\xcb";
    unsigned char *low = mmap(NULL, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    memcpy(low, code, sizeof code - 1);
    place.offset = (unsigned)(uintptr_t)low;
    place.selector = 0x23;
    unsigned long answer = SYS32_GETPID;
    __asm__ volatile("mov %%rsp, %%rbx\n mov %1, %%rsp\n lcall *%2\n mov %%rbx, %%rsp"
                     : "+a"(answer)
                     : "r"(low + BYTES), "m"(place)
                     : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    return (unsigned)answer == (unsigned)getpid();
}

static void be_signalled(const char *who)
{
    for (int i = 0; i < TIMES; i++) {
        pthread_kill(pthread_self(), SIGUSR1);
        __asm__ volatile("mov (%%rax), %%eax" : : "a"(16L) : "memory");
    }
    printf("%s: %d sent, %d nested, %d of these aside, %d faults", who, seen.sent, seen.nested, seen.aside, seen.faults);
    printf(", %d with the signal blocked\n", seen.blocked);
}

static void *made(void *unused)
{
    be_signalled("made");
    return unused;
}

static void *be_left_and_go_on(void *unused)
{
    printf("left: %d\n", be_left());
    be_signalled("left");
    alternate = malloc(STACK_BYTES);
    stack_t stack = {.ss_sp = alternate, .ss_size = STACK_BYTES};
    sigaltstack(&stack, NULL);
    be_signalled("left, with a stack of its own");
    pthread_t thread;
    pthread_create(&thread, NULL, made, NULL);
    pthread_join(thread, NULL);
    return unused;
}

int main(void)
{
    struct sigaction sent = {.sa_handler = on_sent}, nested = {.sa_handler = on_nested, .sa_flags = SA_ONSTACK};
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGUSR1, &sent, NULL);
    sigaction(SIGUSR2, &nested, NULL);
    sigaction(SIGSEGV, &fault, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, be_left_and_go_on, NULL);
    pthread_join(thread, NULL);
    be_signalled("first");
    return 0;
}
