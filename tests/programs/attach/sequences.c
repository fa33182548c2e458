/* what: threads of one processor add to a counter by restartable sequences that last, until SIGTERM: no sum is lost; and
 *       one spins in a sequence that only an abort leaves
 * build: -O2 -pthread
 * also: static -O2 -pthread -static
 */
#define _GNU_SOURCE
#include "../rseq_note.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { N_ADDERS = 3 };

static atomic_int is_over;
static volatile uint64_t counter;
static uint64_t commits[N_ADDERS], n_aborted;

/* Loads the counter, goes through many blocks, stores one more. 1: it did, 0: it was aborted. There are many of these, so that
 * a thread which has just come under a translator is mostly inside the translator on its way through one. */
#define ADD(name)                                                                                                      \
    __attribute__((noinline)) static int name(struct rseq *area, volatile uint64_t *place)                             \
    {                                                                                                                  \
        __asm__ goto(RSEQ_TABLE RSEQ_ANNOUNCE("%[area]")                                                               \
                     "1: mov (%[place]), %%rdx\n"                                                                      \
                     ".rept 24\n test %%rsp, %%rsp\n jz 5f\n .endr\n"                                                 \
                     "5: inc %%rdx\n mov %%rdx, (%[place])\n"                                                          \
                     "2:\n" RSEQ_ABORT("%l[aborted]")                                                                  \
                     :                                                                                                 \
                     : [area] "r"(area), [place] "r"(place)                                                            \
                     : "memory", "cc", "rax", "rdx"                                                                    \
                     : aborted);                                                                                       \
        return 1;                                                                                                      \
    aborted:                                                                                                           \
        return 0;                                                                                                      \
    }
#define EIGHT_ADDS(name)                                                                                               \
    ADD(name##0) ADD(name##1) ADD(name##2) ADD(name##3) ADD(name##4) ADD(name##5) ADD(name##6) ADD(name##7)
#define EIGHT(name) name##0, name##1, name##2, name##3, name##4, name##5, name##6, name##7

EIGHT_ADDS(add_a)
EIGHT_ADDS(add_b)
EIGHT_ADDS(add_c)
EIGHT_ADDS(add_d)
EIGHT_ADDS(add_e)
EIGHT_ADDS(add_f)

static int (*const adds[])(struct rseq *, volatile uint64_t *) = {EIGHT(add_a), EIGHT(add_b), EIGHT(add_c),
                                               EIGHT(add_d), EIGHT(add_e), EIGHT(add_f)};

/* Runs until it is aborted. */
__attribute__((noinline)) static void spin(struct rseq *area)
{
    __asm__ goto(RSEQ_TABLE RSEQ_ANNOUNCE("%[area]") "1: pause\n jmp 1b\n"
                 "2:\n" RSEQ_ABORT("%l[aborted]")
                 :
                 : [area] "r"(area)
                 : "memory", "cc", "rax"
                 : aborted);
    __builtin_trap();
aborted:
    return;
}

static void *keep_adding(void *number)
{
    long me = (long)number;
    struct rseq *area = rseq_area();
    for (uint64_t i = me * 8; !is_over; i++)
        commits[me] += adds[i % (sizeof adds / sizeof *adds)](area, &counter);
    return NULL;
}

static void *keep_spinning(void *unused)
{
    (void)unused;
    struct rseq *area = rseq_area();
    while (!is_over) {
        spin(area);
        n_aborted++;
    }
    return NULL;
}

static void ignore(int number)
{
    (void)number;
}

/* Aborts are wanted more often than the scheduler makes them. */
static void *keep_disturbing(void *thread)
{
    while (!is_over) {
        pthread_kill(*(pthread_t *)thread, SIGUSR1);
        usleep(300);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[N_ADDERS + 2];
    sigset_t term;
    int number;
    cpu_set_t one;
    rseq_area();
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, NULL);
    for (long i = 0; i < N_ADDERS; i++)
        pthread_create(&threads[i], NULL, keep_adding, (void *)i);
    signal(SIGUSR1, ignore);
    pthread_create(&threads[N_ADDERS], NULL, keep_spinning, NULL);
    pthread_create(&threads[N_ADDERS + 1], NULL, keep_disturbing, &threads[N_ADDERS]);
    puts("ready");
    fflush(stdout);
    sigwait(&term, &number);
    is_over = 1;
    uint64_t sum = 0;
    /* The last one first: nobody is sent a signal who has ended. */
    for (int i = N_ADDERS + 1; i >= 0; i--)
        pthread_join(threads[i], NULL);
    int is_good = n_aborted > 0;
    for (int i = 0; i < N_ADDERS; i++) {
        sum += commits[i];
        is_good &= commits[i] > 0;
    }
    if (sum != counter)
        printf("bad: %lu commits, the counter says %lu\n", (unsigned long)sum, (unsigned long)counter);
    if (!is_good)
        printf("bad: %lu aborted, %lu %lu %lu commits\n", (unsigned long)n_aborted, (unsigned long)commits[0],
               (unsigned long)commits[1], (unsigned long)commits[2]);
    puts(is_good && sum == counter ? "good" : "bad");
    return !is_good || sum != counter;
}
