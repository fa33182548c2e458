/* what: 3,000 queued signals hit a thread in the middle of calls, returns, jump tables, red zones, flags, strings, system calls
 * build: -O2 -pthread -fno-stack-protector
 * also: nopie -O1 -pthread -fno-stack-protector -no-pie
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIGNALS = 3000 };

static atomic_int handled, finished;
static uint64_t scratch[64];
static pthread_t target;

__attribute__((noinline)) static uint64_t mix(uint64_t x, unsigned depth)
{
    return depth == 0 ? x : mix(x * 31 + depth, depth - 1) ^ depth;
}

static void handler(int number)
{
    (void)number;
    /* Uses the stack, calls, vector code of libc, flags. */
    scratch[handled & 63] = mix(handled, 5);
    char text[100];
    memset(text, handled, sizeof text);
    scratch[1] += (unsigned char)text[50];
    atomic_fetch_add(&handled, 1);
}

static void *send(void *argument)
{
    (void)argument;
    for (int i = 0; i < SIGNALS; i++) {
        while (pthread_sigqueue(target, SIGRTMIN, (union sigval){.sival_int = i}) == EAGAIN)
            sched_yield();
        for (volatile int pause = 0; pause < 500 + i * 7 % 1000; pause++)
            ;
    }
    while (atomic_load(&handled) < SIGNALS)
        sched_yield();
    atomic_store(&finished, 1);
    return NULL;
}

__attribute__((noinline)) static uint64_t table(uint64_t x)
{
    switch (x % 7) {
    case 0: return x * 3;
    case 1: return x + 99;
    case 2: return x ^ 0x1234;
    case 3: return x >> 1;
    case 4: return ~x;
    case 5: return x * x;
    default: return x << 3;
    }
}

/* Keeps values below the stack pointer, flags over jumps, and counts in every register it can. */
__attribute__((naked, noinline)) static uint64_t red_zone(uint64_t seed)
{
    __asm__(".intel_syntax noprefix\n"
            "    mov rax, rdi\n"
            "    mov ecx, 15\n"
            "1:  imul rax, rax, 31\n"
            "    mov rdx, rcx\n"
            "    neg rdx\n"
            "    mov [rsp + rdx * 8 - 8], rax\n"
            "    dec ecx\n"
            "    jnz 1b\n"
            "    xor eax, eax\n"
            "    mov ecx, 15\n"
            "    stc\n"
            "2:  mov rdx, rcx\n"
            "    not rdx\n"
            "    lea rdx, [rdx * 8]\n"
            "    adc rax, [rsp + rdx]\n"
            "    dec ecx\n"
            "    jnz 2b\n"
            "    adc rax, 0\n"
            "    mov [rsp - 8], rdi\n"
            "    lea rdx, [rip + 3f]\n"
            "    jmp rdx\n"
            "3:  add rax, [rsp - 8]\n"
            "    ret\n"
            ".att_syntax\n");
}

static int compare(const void *a, const void *b) { return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b; }

static uint64_t work(void)
{
    uint64_t sum = mix(1, 40);
    for (unsigned i = 0; i < 60; i++)
        sum = sum * 3 + table(sum) + red_zone(i);
    int numbers[40];
    for (int i = 0; i < 40; i++)
        numbers[i] = (int)(mix((uint64_t)i, 3) & 0xffff);
    qsort(numbers, 40, sizeof *numbers, compare);
    char text[300], copy[300];
    memset(text, 'x', sizeof text);
    text[299] = '\0';
    const char *from = text;
    char *to = copy;
    size_t left = sizeof text;
    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(left) : : "memory");
    sum += strlen(copy) + (uint64_t)numbers[20] + (uint64_t)(syscall(SYS_getpid) == getpid());
    double real = 1.0;
    for (int i = 1; i < 50; i++)
        real = real * 1.01 + 1.0 / i;
    uint64_t bits;
    memcpy(&bits, &real, 8);
    return sum ^ bits;
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGRTMIN, &action, NULL);
    uint64_t expected = work();
    target = pthread_self();
    pthread_t sender;
    pthread_create(&sender, NULL, send, NULL);
    long wrong = 0;
    while (!atomic_load(&finished))
        wrong += work() != expected;
    pthread_join(sender, NULL);
    printf("%lx, handled %d, wrong %ld\n", expected, handled, wrong);
    return 0;
}
