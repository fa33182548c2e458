/* what: probes of the kernel (uprobes) on code that ran often before: of the program's own, and of a child that runs it all the time
 * build: -O1
 * needs: probes
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include "note.h"
#include "probe.h"

enum { BEFORE = 5000, OFTEN = 3000000, TURNS = 40, SECONDS = 30 };

__attribute__((noipa)) static long work(long value)
{
    return value * 3 + 1;
}

__attribute__((noipa)) static long step(long value)
{
    return work(value) % 1000003;
}

/* Of the child's alone. */
__attribute__((noipa)) static long other_step(long value)
{
    return value ^ value >> 3;
}

static long run(long value, int turns)
{
    for (int i = 0; i < turns; i++)
        value = step(value);
    return value;
}

static volatile struct {
    long turns;
    int is_over;
} *shared;

/* No system call, and nothing new: a loop that stays where it is. */
static void run_until_told(void)
{
    long value = 1;
    while (!shared->is_over) {
        value += other_step(value);
        shared->turns++;
    }
    _exit(7);
}

static int is_late(time_t since)
{
    return time(NULL) - since > SECONDS;
}

int main(void)
{
    if (kind_of_probes() < 0)
        return 1;
    note("before", run(1, BEFORE));
    int probe = set_probe(step, 0), inner = set_probe(work, 0);
    note("probed", run(1, TURNS));
    note("hits", hits_of(probe));
    note("hits inside", hits_of(inner));
    close(inner);
    close(probe);
    note("after", run(1, BEFORE));

    shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    if (child == 0)
        run_until_told();
    time_t since = time(NULL);
    while (shared->turns < OFTEN && !is_late(since))
        usleep(1000);
    probe = set_probe(other_step, child);
    while (hits_of(probe) < TURNS && !is_late(since))
        usleep(1000);
    note("child was hit", hits_of(probe) >= TURNS);
    close(probe);
    long turns = shared->turns;
    while (shared->turns < turns + BEFORE && !is_late(since))
        usleep(1000);
    shared->is_over = 1;
    int status = 0;
    waitpid(child, &status, 0);
    note("child ended with", WEXITSTATUS(status));
    return 0;
}
