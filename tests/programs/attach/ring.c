/* what: reads by io_uring that tasks of the kernel's make for the process: one that waits, and, with an argument, one that polls;
 *       ends at the end of its input
 * build: -O1
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ring;
static struct io_uring_params parameters;
static char *submissions, *completions;
static struct io_uring_sqe *entries;

static unsigned *word(char *base, unsigned offset)
{
    return (unsigned *)(base + offset);
}

static int open_ring(int polls)
{
    parameters.flags = polls ? IORING_SETUP_SQPOLL : 0;
    parameters.sq_thread_idle = 100000;
    ring = syscall(SYS_io_uring_setup, 8, &parameters);
    if (ring < 0)
        return 0;
    int protection = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    submissions = mmap(0, 4096, protection, flags, ring, IORING_OFF_SQ_RING);
    completions = mmap(0, 4096, protection, flags, ring, IORING_OFF_CQ_RING);
    entries = mmap(0, 4096, protection, flags, ring, IORING_OFF_SQES);
    return submissions != MAP_FAILED && completions != MAP_FAILED && (void *)entries != MAP_FAILED;
}

/* A read by a worker, which waits where there is nothing to read. */
static void submit_read(int file, char *byte)
{
    unsigned *tail = word(submissions, parameters.sq_off.tail), index = *tail & 7;
    memset(&entries[index], 0, sizeof entries[index]);
    entries[index].opcode = IORING_OP_READ;
    entries[index].flags = IOSQE_ASYNC;
    entries[index].fd = file;
    entries[index].addr = (unsigned long)byte;
    entries[index].len = 1;
    word(submissions, parameters.sq_off.array)[index] = index;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    unsigned how = parameters.flags & IORING_SETUP_SQPOLL ? IORING_ENTER_SQ_WAKEUP : 0;
    syscall(SYS_io_uring_enter, ring, 1, 0, how, NULL, 0);
}

static unsigned completed(void)
{
    return __atomic_load_n(word(completions, parameters.cq_off.tail), __ATOMIC_ACQUIRE);
}

static void wait_for(unsigned n)
{
    while (completed() < n)
        syscall(SYS_io_uring_enter, ring, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0);
    /* All have been seen: there is room for more. */
    __atomic_store_n(word(completions, parameters.cq_off.head), completed(), __ATOMIC_RELEASE);
}

int main(int count, char **words)
{
    (void)words;
    char byte = 0, waited = 0;
    int zero = open("/dev/zero", O_RDONLY), ends[2];
    if (!open_ring(count > 1) || pipe(ends) != 0) {
        puts("no ring");
        return 77;
    }
    submit_read(ends[0], &waited);
    submit_read(zero, &byte);
    wait_for(1);
    puts("ready");
    fflush(stdout);
    unsigned n = 1;
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (poll(&input, 1, 1) == 0) {
        submit_read(zero, &byte);
        wait_for(++n);
    }
    write(ends[1], "x", 1);
    wait_for(n + 1);
    puts(waited == 'x' ? "good" : "bad");
    return waited != 'x';
}
