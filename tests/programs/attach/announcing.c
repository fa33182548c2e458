/* what: a thread holds a restartable sequence's descriptor in a register until SIGUSR1, announces it only then, and stays in
 *       the sequence's one instruction for longer than another thread lets it: it must be aborted
 * build: -O2 -pthread
 */
#define _GNU_SOURCE
#include "../rseq_note.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

enum { LONG_BYTES = 1 << 28 };

static volatile int may_announce, is_over;

static void allow(int number)
{
    (void)number;
    may_announce = 1;
}

static void *keep_busy(void *unused)
{
    while (!is_over)
        ;
    return unused;
}

/* Whether it was aborted. */
static int stay(struct rseq *area, const char *bytes)
{
    __asm__ goto(RSEQ_TABLE "mov %[bytes], %%rsi\n mov %[size], %%ecx\n" RSEQ_NAME
                 "5: pause\n cmpl $0, %[may_announce]\n je 5b\n" RSEQ_ANNOUNCE_NAMED("%[area]")
                 "1: rep lodsb\n"
                 "2:\n" RSEQ_ABORT("%l[aborted]")
                 :
                 : [area] "r"(area), [may_announce] "m"(may_announce), [bytes] "r"(bytes), [size] "i"(LONG_BYTES)
                 : "memory", "cc", "rax", "rcx", "rsi"
                 : aborted);
    return 0;
aborted:
    return 1;
}

int main(void)
{
    pthread_t other;
    cpu_set_t one;
    struct rseq *area = rseq_area();
    const char *bytes = mmap(NULL, LONG_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    signal(SIGUSR1, allow);
    pthread_create(&other, NULL, keep_busy, NULL);
    puts("ready");
    fflush(stdout);
    int is_aborted = stay(area, bytes);
    is_over = 1;
    pthread_join(other, NULL);
    puts(is_aborted ? "aborted" : "went through");
    return !is_aborted;
}
