/* what: operations of io_uring, by raw calls: says what it submits and which results it sees (S and C, user_data, opcode or result)
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef IORING_SETUP_NO_MMAP
#define IORING_SETUP_NO_MMAP (1U << 14)
#endif
#ifndef IORING_SETUP_NO_SQARRAY
#define IORING_SETUP_NO_SQARRAY (1U << 16)
#endif
#ifndef IORING_REGISTER_USE_REGISTERED_RING
#define IORING_REGISTER_USE_REGISTERED_RING (1U << 31)
#endif
/* Since Linux 6.13. */
#define REGISTER_RESIZE_RINGS 33
#define ENTRIES 4

struct ring {
    int fd;
    struct io_uring_params with;
    char *rings, *entries;
    size_t rings_bytes, entries_bytes;
    unsigned submitted;
};

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static FILE *told;

static unsigned *word(struct ring *ring, unsigned offset)
{
    return (unsigned *)(ring->rings + offset);
}

static int map(struct ring *ring)
{
    int protection = PROT_READ | PROT_WRITE, how = MAP_SHARED | MAP_POPULATE;
    ring->rings = mmap(0, 4096, protection, how, ring->fd, IORING_OFF_SQ_RING);
    ring->entries = mmap(0, 4096, protection, how, ring->fd, IORING_OFF_SQES);
    return ring->rings != MAP_FAILED && ring->entries != MAP_FAILED;
}

static int make(struct ring *ring, unsigned flags)
{
    int protection = PROT_READ | PROT_WRITE;
    memset(ring, 0, sizeof *ring);
    ring->with.flags = flags;
    ring->with.sq_thread_idle = 50;
    ring->rings_bytes = ring->entries_bytes = 4096;
    if (flags & IORING_SETUP_NO_MMAP) {
        ring->rings = mmap(0, 4096, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ring->entries = mmap(0, 4096, protection, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ring->with.cq_off.resv2 = (unsigned long)ring->rings;
        ring->with.sq_off.resv2 = (unsigned long)ring->entries;
    }
    ring->fd = syscall(SYS_io_uring_setup, ENTRIES, &ring->with);
    if (ring->fd < 0)
        return 0;
    if (flags & IORING_SETUP_NO_MMAP)
        return 1;
    return map(ring);
}

/* Puts an operation into the next entry; the array names entries backwards. */
static struct io_uring_sqe *put(struct ring *ring, int opcode, int fd, const void *address, unsigned length, unsigned long data)
{
    unsigned entries = ring->with.sq_entries;
    unsigned tail = *word(ring, ring->with.sq_off.tail), place = tail & (entries - 1), index = place;
    unsigned size = ring->with.flags & IORING_SETUP_SQE128 ? 128 : 64;
    if (!(ring->with.flags & IORING_SETUP_NO_SQARRAY)) {
        index = entries - 1 - place;
        word(ring, ring->with.sq_off.array)[place] = index;
    }
    struct io_uring_sqe *entry = (void *)(ring->entries + index * size);
    memset(entry, 0, size);
    entry->opcode = opcode;
    entry->fd = fd;
    entry->addr = (unsigned long)address;
    entry->len = length;
    entry->user_data = data;
    __atomic_store_n(word(ring, ring->with.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
    ring->submitted++;
    fprintf(told, "S %lx %d\n", data, opcode);
    return entry;
}

static int enter(struct ring *ring, unsigned submit, unsigned wait)
{
    return syscall(SYS_io_uring_enter, ring->fd, submit, wait, wait ? IORING_ENTER_GETEVENTS : 0, NULL, 0);
}

/* Takes what is there, without a call. */
static unsigned take(struct ring *ring)
{
    unsigned head = *word(ring, ring->with.cq_off.head), n = 0;
    unsigned size = ring->with.flags & IORING_SETUP_CQE32 ? 32 : 16;
    while (head != __atomic_load_n(word(ring, ring->with.cq_off.tail), __ATOMIC_ACQUIRE)) {
        unsigned index = head & (ring->with.cq_entries - 1);
        struct io_uring_cqe *entry = (void *)(ring->rings + ring->with.cq_off.cqes + index * size);
        fprintf(told, "C %llx %d\n", entry->user_data, entry->res);
        head++;
        n++;
    }
    __atomic_store_n(word(ring, ring->with.cq_off.head), head, __ATOMIC_RELEASE);
    return n;
}

static void files(struct ring *ring, const char *path)
{
    char text[16] = "", message[] = "by a ring";
    put(ring, IORING_OP_OPENAT, AT_FDCWD, path, 0600, 0x10)->open_flags = O_RDWR | O_CREAT | O_TRUNC;
    enter(ring, 1, 1);
    struct io_uring_cqe *entry = (void *)(ring->rings + ring->with.cq_off.cqes);
    int file = entry->res;
    take(ring);
    put(ring, IORING_OP_WRITE, file, message, sizeof message - 1, 0x11)->flags = IOSQE_IO_LINK;
    put(ring, IORING_OP_READ, file, text, sizeof text, 0x12);
    put(ring, IORING_OP_READ, 9999, text, sizeof text, 0x13);
    enter(ring, 3, 3);
    take(ring);
    put(ring, IORING_OP_CLOSE, file, NULL, 0, 0x14);
    enter(ring, 1, 1);
    take(ring);
    fprintf(told, "file %d %s\n", file, text);
}

static void wrap(struct ring *ring, int rounds)
{
    int zero = open("/dev/zero", O_RDONLY);
    char bytes[8];
    for (int round = 0; round < rounds; round++) {
        unsigned n = 1 + round % ENTRIES;
        for (unsigned each = 0; each < n; each++)
            put(ring, each & 1 ? IORING_OP_NOP : IORING_OP_READ, zero, each & 1 ? NULL : bytes, each & 1 ? 0 : 1 + each, 0x1000 + 8 * round + each);
        enter(ring, n, n);
        take(ring);
    }
    close(zero);
}

static void *in_thread(void *given)
{
    struct ring *ring = given;
    static unsigned long next = 0x100;
    for (int round = 0; round < 50; round++) {
        pthread_mutex_lock(&turn);
        put(ring, IORING_OP_NOP, -1, NULL, 0, next++);
        enter(ring, 1, 1);
        take(ring);
        pthread_mutex_unlock(&turn);
    }
    return NULL;
}

static void several(struct ring *ring)
{
    pthread_t threads[4];
    for (int each = 0; each < 4; each++)
        pthread_create(&threads[each], NULL, in_thread, ring);
    for (int each = 0; each < 4; each++)
        pthread_join(threads[each], NULL);
}

static void multishot(struct ring *ring)
{
    int ends[2];
    if (pipe(ends))
        return;
    put(ring, IORING_OP_POLL_ADD, ends[0], NULL, IORING_POLL_ADD_MULTI, 0x20)->poll32_events = POLLIN;
    enter(ring, 1, 0);
    for (int round = 0; round < 3; round++) {
        write(ends[1], "x", 1);
        enter(ring, 0, 1);
        take(ring);
    }
    /* The target is the other one's user_data. */
    put(ring, IORING_OP_POLL_REMOVE, -1, (void *)0x20, 0, 0x21);
    enter(ring, 1, 2);
    take(ring);
}

/* A descriptor of a ring's own: opened, read and closed by its index. */
static void direct(struct ring *ring)
{
    int none = -1;
    char byte;
    syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_FILES, &none, 1);
    put(ring, IORING_OP_OPENAT, AT_FDCWD, "/dev/zero", 0, 0x30)->file_index = 1;
    enter(ring, 1, 1);
    take(ring);
    put(ring, IORING_OP_READ, 0, &byte, 1, 0x31)->flags = IOSQE_FIXED_FILE;
    enter(ring, 1, 1);
    take(ring);
    put(ring, IORING_OP_CLOSE, 0, NULL, 0, 0x32)->file_index = 1;
    enter(ring, 1, 1);
    take(ring);
}

static void same(struct ring *ring)
{
    for (int each = 0; each < 3; each++)
        put(ring, IORING_OP_NOP, -1, NULL, 0, 0x40);
    enter(ring, 3, 3);
    take(ring);
}

static void forked(struct ring *ring)
{
    put(ring, IORING_OP_NOP, -1, NULL, 0, 0x50);
    enter(ring, 1, 1);
    fflush(told);
    pid_t child = fork();
    if (!child) {
        take(ring);
        put(ring, IORING_OP_NOP, -1, NULL, 0, 0x51);
        enter(ring, 1, 1);
        take(ring);
        struct ring own;
        if (make(&own, 0)) {
            put(&own, IORING_OP_NOP, -1, NULL, 0, 0x52);
            enter(&own, 1, 1);
            take(&own);
        }
        fflush(told);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static void by_another_name(struct ring *ring)
{
    int other = dup(ring->fd), before = ring->fd;
    ring->fd = other;
    put(ring, IORING_OP_NOP, -1, NULL, 0, 0x60);
    enter(ring, 1, 1);
    take(ring);
    ring->fd = before;
    close(other);
}

/* The thread has an index for the ring, with which it enters it. */
static int registered(struct ring *ring)
{
    struct io_uring_rsrc_update update = {.offset = 5, .data = ring->fd};
    if (syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_RING_FDS, &update, 1) != 1)
        return 77;
    for (int round = 0; round < 3; round++) {
        put(ring, IORING_OP_NOP, -1, NULL, 0, 0x90 + round);
        syscall(SYS_io_uring_enter, 5, 1, 1, IORING_ENTER_GETEVENTS | 1 << 4, NULL, 0);
        take(ring);
    }
    /* What it was made with is not needed any more. */
    close(ring->fd);
    put(ring, IORING_OP_NOP, -1, NULL, 0, 0x93);
    syscall(SYS_io_uring_enter, 5, 1, 1, IORING_ENTER_GETEVENTS | 1 << 4, NULL, 0);
    take(ring);
    return 0;
}

/* Is larger from then on, and elsewhere; an operation is open meanwhile. Takes a ring without an array of indices. */
static int resized(struct ring *ring)
{
    int ends[2];
    char byte;
    struct io_uring_params with = {.sq_entries = 4 * ENTRIES, .cq_entries = 8 * ENTRIES};
    char *before = ring->rings, *entries_before = ring->entries;
    if (pipe(ends))
        return 1;
    put(ring, IORING_OP_READ, ends[0], &byte, 1, 0xa0);
    put(ring, IORING_OP_NOP, -1, NULL, 0, 0xa1);
    enter(ring, 2, 1);
    take(ring);
    if (syscall(SYS_io_uring_register, ring->fd, REGISTER_RESIZE_RINGS, &with, 1))
        return 77;
    with.flags = ring->with.flags;
    ring->with = with;
    munmap(before, 4096);
    munmap(entries_before, 4096);
    if (!map(ring))
        return 1;
    for (int round = 0; round < 5; round++) {
        for (int each = 0; each < 3 * ENTRIES; each++)
            put(ring, IORING_OP_NOP, -1, NULL, 0, 0xb00 + 0x10 * round + each);
        enter(ring, 3 * ENTRIES, 3 * ENTRIES);
        take(ring);
    }
    write(ends[1], "x", 1);
    enter(ring, 0, 1);
    take(ring);
    return 0;
}

/* Buffers that the kernel chooses from: given to it by an operation, and in a ring of their own. */
static int buffers(struct ring *ring)
{
    static char bytes[4][16];
    int zero = open("/dev/zero", O_RDONLY);
    struct io_uring_sqe *entry = put(ring, IORING_OP_PROVIDE_BUFFERS, 2, bytes, 16, 0xc0);
    entry->off = 6;
    entry->buf_group = 9;
    enter(ring, 1, 1);
    take(ring);
    /* One more than there are. */
    for (int round = 0; round < 3; round++) {
        entry = put(ring, IORING_OP_READ, zero, NULL, 4, 0xc1 + round);
        entry->flags = IOSQE_BUFFER_SELECT;
        entry->buf_group = 9;
        enter(ring, 1, 1);
        take(ring);
    }
    struct io_uring_buf_ring *given = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct io_uring_buf_reg with = {.ring_addr = (unsigned long)given, .ring_entries = 8, .bgid = 10};
    if (syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_PBUF_RING, &with, 1))
        return 77;
    given->bufs[0] = (struct io_uring_buf){.addr = (unsigned long)bytes[2], .len = 16, .bid = 0x1234};
    __atomic_store_n(&given->tail, 1, __ATOMIC_RELEASE);
    entry = put(ring, IORING_OP_READ, zero, NULL, 5, 0xc8);
    entry->flags = IOSQE_BUFFER_SELECT;
    entry->buf_group = 10;
    enter(ring, 1, 1);
    take(ring);
    return 0;
}

/* Never has a result. */
static void left(struct ring *ring)
{
    int ends[2];
    static char byte;
    if (pipe(ends))
        return;
    put(ring, IORING_OP_READ, ends[0], &byte, 1, 0x70);
    enter(ring, 1, 0);
}

/* Another program takes its place, at the second try. */
static void replaced(struct ring *ring)
{
    left(ring);
    execl("/no/such/program", "none", NULL);
    put(ring, IORING_OP_NOP, -1, NULL, 0, 0x71);
    enter(ring, 1, 1);
    take(ring);
    puts("done");
    fflush(stdout);
    execl("/proc/self/exe", "rings", "same", NULL);
}

static void hostile(struct ring *ring)
{
    static unsigned long seed = 88172645463325252;
    unsigned garbage[] = {0, 1, 3, 4, 5, 0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff};
    unsigned places[] = {ring->with.sq_off.head, ring->with.sq_off.tail, ring->with.sq_off.array, ring->with.cq_off.head,
                         ring->with.cq_off.tail};
    for (int round = 0; round < 400; round++) {
        for (unsigned at = 0; at < sizeof *ring->entries * 64 * ENTRIES; at += 8) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            *(unsigned long *)(ring->entries + at) = seed;
        }
        /* Of what is made up only what does nothing is executed. */
        for (int each = 0; each < ENTRIES; each++)
            ring->entries[64 * each] = round & 1 ? IORING_OP_STATX : 200;
        seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
        *word(ring, places[seed % 5]) = garbage[seed / 8 % 9];
        enter(ring, garbage[seed / 128 % 9] & 7, 0);
    }
    munmap(ring->rings, 4096);
    enter(ring, 4, 0);
    mmap(ring->entries, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    enter(ring, 4, 0);
    struct io_uring_params *none = (void *)8;
    syscall(SYS_io_uring_setup, 4, none);
    syscall(SYS_io_uring_setup, 0, &ring->with);
    syscall(SYS_io_uring_enter, -1, 4, 0, 0, NULL, 0);
    syscall(SYS_io_uring_enter, 77, 4, 0, 1 << 4, NULL, 0);
}

static void polled(struct ring *ring)
{
    for (int each = 0; each < 3; each++)
        put(ring, IORING_OP_NOP, -1, NULL, 0, 0x80 + each);
    syscall(SYS_io_uring_enter, ring->fd, 3, 3, IORING_ENTER_SQ_WAKEUP | IORING_ENTER_GETEVENTS, NULL, 0);
    take(ring);
}

int main(int count, char **words)
{
    struct ring ring;
    const char *what = count > 1 ? words[1] : "";
    unsigned flags = count > 2 ? strtoul(words[2], NULL, 0) : 0;
    int status = 0;
    told = stdout;
    if (!make(&ring, flags)) {
        puts("no ring");
        return 77;
    }
    if (!strcmp(what, "files"))
        files(&ring, words[3]);
    else if (!strcmp(what, "wrap"))
        wrap(&ring, 200);
    else if (!strcmp(what, "threads"))
        several(&ring);
    else if (!strcmp(what, "multishot"))
        multishot(&ring);
    else if (!strcmp(what, "direct"))
        direct(&ring);
    else if (!strcmp(what, "same"))
        same(&ring);
    else if (!strcmp(what, "fork"))
        forked(&ring);
    else if (!strcmp(what, "dup"))
        by_another_name(&ring);
    else if (!strcmp(what, "left"))
        left(&ring);
    else if (!strcmp(what, "replaced"))
        replaced(&ring);
    else if (!strcmp(what, "hostile"))
        hostile(&ring);
    else if (!strcmp(what, "polled"))
        polled(&ring);
    else if (!strcmp(what, "registered"))
        status = registered(&ring);
    else if (!strcmp(what, "resized"))
        status = resized(&ring);
    else if (!strcmp(what, "buffers"))
        status = buffers(&ring);
    puts("done");
    return status;
}
