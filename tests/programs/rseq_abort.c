/* what: a restartable sequence that only an abort leaves: by a signal, by preemption, by migration; all registers are kept
 * build: -O2 -pthread
 * also: static -O2 -pthread -static
 */
#define _GNU_SOURCE
#include "rseq_note.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/time.h>

enum { ROUNDS = 20 };

static atomic_int ticks, finished, done;

/* Spins in blocks of its own until it is aborted, then stores all registers but the stack pointer. */
__attribute__((naked, noinline)) static void spin(struct rseq *area, uint64_t *registers)
{
    (void)area, (void)registers;
    __asm__(RSEQ_TABLE
            "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n push %rsi\n"
            "mov $0x1111111111110000, %rcx\n mov $0x2222222222220002, %rdx\n mov $0x3333333333330003, %rbx\n"
            "mov $0x5555555555550005, %rbp\n mov $0x6666666666660006, %rsi\n mov $0x8888888888880008, %r8\n"
            "mov $0x9999999999990009, %r9\n mov $0xaaaaaaaaaaaa000a, %r10\n mov $0xbbbbbbbbbbbb000b, %r11\n"
            "mov $0xcccccccccccc000c, %r12\n mov $0xdddddddddddd000d, %r13\n mov $0xeeeeeeeeeeee000e, %r14\n"
            "mov $0xffffffffffff000f, %r15\n"
            "lea 3b(%rip), %rax\n mov %rax, 8(%rdi)\n"
            "1: test %r8b, %r8b\n jz 6f\n"
            "5: cmp %r9, %r10\n je 2f\n test $1, %r11b\n jnz 1b\n ud2\n"
            "6: jmp 5b\n"
            "2: ud2\n"
            ".byte 0x0f, 0xb9, 0x3d\n .long 0x53053053\n"
            "4: mov %rdi, -16(%rsp)\n pop %rdi\n"
            "mov %rax, 0(%rdi)\n mov %rcx, 8(%rdi)\n mov %rdx, 16(%rdi)\n mov %rbx, 24(%rdi)\n mov %rbp, 40(%rdi)\n"
            "mov %rsi, 48(%rdi)\n mov %r8, 64(%rdi)\n mov %r9, 72(%rdi)\n mov %r10, 80(%rdi)\n mov %r11, 88(%rdi)\n"
            "mov %r12, 96(%rdi)\n mov %r13, 104(%rdi)\n mov %r14, 112(%rdi)\n mov %r15, 120(%rdi)\n"
            "lea 3b(%rip), %rax\n sub %rax, 0(%rdi)\n"
            "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n");
}

static int is_kept(void)
{
    static const uint64_t expected[16] = {
        0,          0x1111111111110000, 0x2222222222220002, 0x3333333333330003, 0,
        0x5555555555550005, 0x6666666666660006, 0, 0x8888888888880008, 0x9999999999990009,
        0xaaaaaaaaaaaa000a, 0xbbbbbbbbbbbb000b, 0xcccccccccccc000c, 0xdddddddddddd000d,
        0xeeeeeeeeeeee000e, 0xffffffffffff000f};
    uint64_t registers[16] = {0};
    struct rseq *area = rseq_area();
    spin(area, registers);
    return memcmp(registers, expected, sizeof expected) == 0 && area->rseq_cs == 0;
}

static void tick(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    atomic_fetch_add(&ticks, 1);
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

/* Two of them on one processor take it from each other. */
static void *preempted(void *argument)
{
    pin(*(int *)argument);
    long kept = 0;
    for (int i = 0; i < ROUNDS; i++)
        kept += is_kept();
    atomic_fetch_add(&finished, 1);
    while (atomic_load(&finished) < 2)
        ;
    return (void *)kept;
}

static void *migrated(void *argument)
{
    long kept = 0;
    for (int i = 0; i < ROUNDS; i++)
        kept += is_kept();
    atomic_fetch_add((atomic_int *)argument, 1);
    return (void *)kept;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = tick, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    int kept = 0, rounds = 0;
    for (; rounds < ROUNDS || atomic_load(&ticks) < 5; rounds++)
        kept += is_kept();
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    printf("signals: %s\n", kept == rounds ? "all" : "some");

    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    int cpu = sched_getcpu();
    pthread_t threads[2];
    long both = 0;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, preempted, &cpu);
    for (int i = 0; i < 2; i++) {
        void *result;
        pthread_join(threads[i], &result);
        both += (long)result;
    }
    printf("preemption: %ld of %d\n", both, 2 * ROUNDS);

    /* Its processors are changed all the time; where there is one only, this thread takes that from it. */
    void *result;
    pthread_create(&threads[0], NULL, migrated, &done);
    cpu_set_t one;
    for (int i = 0; !atomic_load(&done); i++) {
        CPU_ZERO(&one);
        for (int n = i % CPU_SETSIZE, tries = 0; tries < CPU_SETSIZE; n = (n + 1) % CPU_SETSIZE, tries++)
            if (CPU_ISSET(n, &all)) {
                CPU_SET(n, &one);
                break;
            }
        pthread_setaffinity_np(threads[0], sizeof one, &one);
        sched_yield();
    }
    pthread_join(threads[0], &result);
    printf("migration: %ld of %d\n", (long)result, ROUNDS);
    return 0;
}
