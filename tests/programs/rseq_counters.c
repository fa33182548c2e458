/* what: per-CPU counters and lists that only restartable sequences guard, by more threads than processors that move and yield
 * build: -O2 -pthread
 * also: static -O1 -pthread -static
 * also: nopie -O2 -pthread -no-pie
 */
#define _GNU_SOURCE
#include "rseq_note.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

enum { CPUS = 1024, THREADS = 6, ROUNDS = 1500, NODES = 40 };

static struct {
    long count;
    long squares;
    char padding[48];
} counters[CPUS] __attribute__((aligned(64)));

struct node {
    struct node *next;
    long number;
};

static struct {
    struct node *head;
    char padding[56];
} lists[CPUS] __attribute__((aligned(64)));

static cpu_set_t all;
static atomic_int aborts, ticks;

static void tick(int number)
{
    (void)number;
    atomic_fetch_add(&ticks, 1);
}

/* Adds one to the processor's counter; a loop between load and store lets others in. */
static void count(struct rseq *area)
{
    for (;;) {
        uint32_t cpu = __atomic_load_n(&area->cpu_id_start, __ATOMIC_RELAXED);
        long *cell = &counters[cpu].count, turns = 20000, value;
        __asm__ volatile goto(RSEQ_TABLE RSEQ_ANNOUNCE("%[area]")
                              "1: cmp %[cpu], 4(%[area])\n jne %l[again]\n"
                              "mov (%[cell]), %[value]\n"
                              "5: dec %[turns]\n jz 6f\n test $1, %b[turns]\n jz 5b\n nop\n jmp 5b\n"
                              "6: inc %[value]\n mov %[value], (%[cell])\n"
                              "2:\n" RSEQ_ABORT("%l[aborted]")
                              : [value] "=&r"(value), [turns] "+&r"(turns)
                              : [area] "r"(area), [cpu] "r"(cpu), [cell] "r"(cell)
                              : "rax", "memory", "cc"
                              : again, aborted);
        return;
    aborted:
        atomic_fetch_add(&aborts, 1);
    again:;
    }
}

/* Commits by an instruction that reads, adds and writes. */
static void add_square(struct rseq *area, long square)
{
    for (;;) {
        uint32_t cpu = __atomic_load_n(&area->cpu_id_start, __ATOMIC_RELAXED);
        long *cell = &counters[cpu].squares;
        __asm__ volatile goto(RSEQ_TABLE RSEQ_ANNOUNCE("%[area]")
                              "1: cmp %[cpu], 4(%[area])\n jne %l[again]\n"
                              "mov $20, %%ecx\n 5: loop 5b\n"
                              "add %[square], (%[cell])\n"
                              "2:\n" RSEQ_ABORT("%l[aborted]")
                              :
                              : [area] "r"(area), [cpu] "r"(cpu), [cell] "r"(cell), [square] "r"(square)
                              : "rax", "rcx", "memory", "cc"
                              : again, aborted);
        return;
    aborted:
    again:;
    }
}

static void push(struct rseq *area, struct node *node)
{
    for (;;) {
        uint32_t cpu = __atomic_load_n(&area->cpu_id_start, __ATOMIC_RELAXED);
        struct node **head = &lists[cpu].head, *first;
        __asm__ volatile goto(RSEQ_TABLE RSEQ_ANNOUNCE("%[area]")
                              "1: cmp %[cpu], 4(%[area])\n jne %l[again]\n"
                              "mov (%[head]), %[first]\n mov %[first], (%[node])\n mov %[node], (%[head])\n"
                              "2:\n" RSEQ_ABORT("%l[again]")
                              : [first] "=&r"(first)
                              : [area] "r"(area), [cpu] "r"(cpu), [head] "r"(head), [node] "r"(node)
                              : "rax", "memory", "cc"
                              : again);
        return;
    again:;
    }
}

/* A node of the list of the processor that the thread is on then; null: it was empty. */
static struct node *pop(struct rseq *area)
{
    for (;;) {
        uint32_t cpu = __atomic_load_n(&area->cpu_id_start, __ATOMIC_RELAXED);
        struct node **head = &lists[cpu].head, *first;
        __asm__ volatile goto(RSEQ_TABLE RSEQ_ANNOUNCE("%[area]")
                              "1: cmp %[cpu], 4(%[area])\n jne %l[again]\n"
                              "mov (%[head]), %[first]\n test %[first], %[first]\n jz %l[empty]\n"
                              "mov (%[first]), %%rax\n mov %%rax, (%[head])\n"
                              "2:\n" RSEQ_ABORT("%l[again]")
                              : [first] "=&r"(first)
                              : [area] "r"(area), [cpu] "r"(cpu), [head] "r"(head)
                              : "rax", "memory", "cc"
                              : again, empty);
        return first;
    empty:
        return NULL;
    again:;
    }
}

static void move(int to)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int n = to % CPU_SETSIZE, tries = 0; tries < CPU_SETSIZE; n = (n + 1) % CPU_SETSIZE, tries++)
        if (CPU_ISSET(n, &all)) {
            CPU_SET(n, &one);
            break;
        }
    sched_setaffinity(0, sizeof one, &one);
}

static void *work(void *argument)
{
    struct rseq *area = rseq_area();
    int number = (int)(long)argument;
    for (int i = 0; i < ROUNDS; i++) {
        count(area);
        add_square(area, i);
        struct node *node = pop(area);
        if (i % 4 == 0)
            sched_yield();
        if (node)
            push(area, node);
        if (i % 16 == number)
            move(i / 16 + number);
    }
    return NULL;
}

int main(void)
{
    static struct node nodes[NODES];
    sched_getaffinity(0, sizeof all, &all);
    signal(SIGALRM, tick);
    struct itimerval timer = {{0, 700}, {0, 700}};
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < NODES; i++) {
        nodes[i].number = i;
        push(rseq_area(), &nodes[i]);
    }
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    long sum = 0, squares = 0, n_nodes = 0, numbers = 0;
    for (int i = 0; i < CPUS; i++) {
        sum += counters[i].count;
        squares += counters[i].squares;
        for (struct node *node = lists[i].head; node && n_nodes < 10 * NODES; node = node->next) {
            n_nodes++;
            numbers += node->number;
        }
    }
    printf("counted %ld, added %ld, %ld nodes of sum %ld\n", sum, squares, n_nodes, numbers);
    return 0;
}
