/* what: probes of the kernel on returns (uretprobes): called from several places, recursive, by a pointer, with signals that come there
 * build: -O1
 * needs: probes
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/time.h>
#include "note.h"
#include "probe.h"

enum { TURNS = 50 };

static volatile long alarms;

__attribute__((noipa)) static long leaf(long value)
{
    return value * 5 + 2;
}

__attribute__((noipa)) static long recursive(long depth)
{
    return depth == 0 ? 1 : recursive(depth - 1) + leaf(depth);
}

__attribute__((noipa)) static long twice(long value)
{
    return leaf(value) ^ leaf(value + 1);
}

static void on_alarm(int number)
{
    (void)number;
    alarms += leaf(0) / 2;
}

static long call_all(void)
{
    long (*volatile by_pointer)(long) = leaf;
    long sum = 0;
    for (int i = 0; i < TURNS; i++)
        sum += twice(i) + recursive(i & 7) + by_pointer(i);
    return sum;
}

int main(void)
{
    if (kind_of_probes() < 0)
        return 1;
    note("before", call_all());
    int of_leaf = set_probe_of(leaf, 0, 1), of_recursive = set_probe_of(recursive, 0, 1);
    note("with", call_all());
    note("hits", hits_of(of_leaf));
    note("hits of the recursive one", hits_of(of_recursive));
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 500}, {0, 500}}, NULL);
    long sum = 0;
    /* All of them may come before its first turn. */
    do
        sum |= call_all();
    while (alarms < 20);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    note("among signals", sum);
    close(of_leaf);
    close(of_recursive);
    note("after", call_all());
    return 0;
}
