/* io_uring: set-up, submissions and results, order, links, limits, workers, registered things: effects and errors. */
#include "cases.h"
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define ENTRIES 8
#define READ_WRITE (PROT_READ | PROT_WRITE)

struct ring {
    int descriptor;
    struct io_uring_params parameters;
    char *shared;
    struct io_uring_sqe *entries;
    unsigned n_made, n_seen;
};

static long enter(int ring, unsigned submitted, unsigned wanted, unsigned flags)
{
    return syscall(SYS_io_uring_enter, ring, submitted, wanted, flags, NULL, 0);
}

static long set_up(unsigned count, struct io_uring_params *parameters)
{
    return syscall(SYS_io_uring_setup, count, parameters);
}

static long registered(int ring, unsigned operation, void *arguments, unsigned count)
{
    return syscall(SYS_io_uring_register, ring, operation, arguments, count);
}

/* Every case begins here: where the kernel gives no ring it is skipped. */
static int make_ring(struct ring *ring, unsigned flags)
{
    *ring = (struct ring){.parameters = {.flags = flags}};
    ring->descriptor = (int)set_up(ENTRIES, &ring->parameters);
    if (ring->descriptor < 0) {
        skip_case(errno == ENOSYS ? "no io_uring" : errno == EPERM ? "io_uring is forbidden" : "no such ring");
        return 0;
    }
    size_t size = ring->parameters.cq_off.cqes + ring->parameters.cq_entries * sizeof(struct io_uring_cqe);
    ring->shared = mmap(NULL, size, READ_WRITE, MAP_SHARED | MAP_POPULATE, ring->descriptor, IORING_OFF_SQ_RING);
    ring->entries = mmap(NULL, ring->parameters.sq_entries * sizeof(struct io_uring_sqe), READ_WRITE,
                         MAP_SHARED | MAP_POPULATE, ring->descriptor, IORING_OFF_SQES);
    EXPECT_TRUE(ring->shared != MAP_FAILED && (void *)ring->entries != MAP_FAILED);
    return 1;
}

static unsigned *word(struct ring *ring, unsigned offset)
{
    return (unsigned *)(ring->shared + offset);
}

/* The next entry, which the kernel comes to know of by `submit`; `data` is what comes back with its result. */
static struct io_uring_sqe *prepare(struct ring *ring, unsigned char operation, int file, const void *address,
                                    unsigned length, uint64_t data)
{
    unsigned at = ring->n_made++ & (ring->parameters.sq_entries - 1);
    word(ring, ring->parameters.sq_off.array)[at] = at;
    ring->entries[at] = (struct io_uring_sqe){
        .opcode = operation, .fd = file, .addr = (uintptr_t)address, .len = length, .user_data = data};
    return &ring->entries[at];
}

static long submit(struct ring *ring, unsigned wanted)
{
    unsigned *tail = word(ring, ring->parameters.sq_off.tail), count = ring->n_made - *tail;
    __atomic_store_n(tail, ring->n_made, __ATOMIC_RELEASE);
    return enter(ring->descriptor, count, wanted, wanted ? IORING_ENTER_GETEVENTS : 0);
}

struct result {
    uint64_t user_data;
    int res;
};

/* The next result; it waits for it. */
static struct result result_of(struct ring *ring)
{
    unsigned *head = word(ring, ring->parameters.cq_off.head), *tail = word(ring, ring->parameters.cq_off.tail);
    while (__atomic_load_n(tail, __ATOMIC_ACQUIRE) == *head)
        if (enter(ring->descriptor, 0, 1, IORING_ENTER_GETEVENTS) < 0 && errno != EINTR) {
            tell_wrong("no result: error %d", errno);
            return (struct result){0};
        }
    struct io_uring_cqe *all = (struct io_uring_cqe *)(ring->shared + ring->parameters.cq_off.cqes);
    const struct io_uring_cqe *at = &all[*head & (ring->parameters.cq_entries - 1)];
    struct result found = {at->user_data, at->res};
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return found;
}

static void expect_result(struct ring *ring, uint64_t data, int wanted)
{
    struct result found = result_of(ring);
    expect_equal("data of a result", (long)found.user_data, (long)data);
    expect_equal("result", found.res, wanted);
}

/* One entry, submitted and waited for. */
static int done_at_once(struct ring *ring, unsigned char operation, int file, const void *address, unsigned length)
{
    prepare(ring, operation, file, address, length, 99);
    EXPECT(submit(ring, 1), 1);
    struct result found = result_of(ring);
    EXPECT(found.user_data, 99);
    return found.res;
}

static void set_up_errors(void)
{
    struct ring ring;
    struct io_uring_params parameters = {0};
    if (!make_ring(&ring, 0))
        return;
    EXPECT_ERROR(set_up(0, &parameters), EINVAL);
    EXPECT_ERROR(set_up(1U << 30, &parameters), EINVAL);
    EXPECT_ERROR(set_up(ENTRIES, NOWHERE), EFAULT);
    parameters = (struct io_uring_params){.flags = 1U << 31};
    EXPECT_ERROR(set_up(ENTRIES, &parameters), EINVAL);
    parameters = (struct io_uring_params){.resv = {0, 1, 0}};
    EXPECT_ERROR(set_up(ENTRIES, &parameters), EINVAL);
    parameters = (struct io_uring_params){.flags = IORING_SETUP_SQ_AFF};
    EXPECT_ERROR(set_up(ENTRIES, &parameters), EINVAL);
    parameters = (struct io_uring_params){.flags = IORING_SETUP_CQSIZE, .cq_entries = 1};
    EXPECT_ERROR(set_up(ENTRIES, &parameters), EINVAL);
    parameters = (struct io_uring_params){.flags = IORING_SETUP_CLAMP};
    EXPECT_TRUE(set_up(1U << 30, &parameters) >= 0);
    EXPECT_TRUE(parameters.sq_entries < 1U << 30);
    EXPECT(ring.parameters.sq_entries, ENTRIES);
    EXPECT(ring.parameters.cq_entries, 2 * ENTRIES);
}

static void enter_errors(void)
{
    struct ring ring;
    int file = memfd_create("no ring", 0);
    if (!make_ring(&ring, 0))
        return;
    EXPECT_ERROR(enter(900, 0, 0, 0), EBADF);
    EXPECT_ERROR(enter(file, 0, 0, 0), EOPNOTSUPP);
    EXPECT_ERROR(enter(ring.descriptor, 0, 0, 1U << 31), EINVAL);
    EXPECT(enter(ring.descriptor, 0, 0, 0), 0);
    EXPECT(enter(ring.descriptor, 5, 0, 0), 0); /* There are none. */
}

static void registration_errors(void)
{
    struct ring ring;
    int file = memfd_create("no ring", 0), bad = 900;
    if (!make_ring(&ring, 0))
        return;
    EXPECT_ERROR(registered(900, IORING_REGISTER_FILES, &file, 1), EBADF);
    EXPECT_ERROR(registered(file, IORING_REGISTER_FILES, &file, 1), EOPNOTSUPP);
    EXPECT_ERROR(registered(ring.descriptor, 9999, NULL, 0), EINVAL);
    EXPECT_ERROR(registered(ring.descriptor, IORING_REGISTER_FILES, &bad, 1), EBADF);
    EXPECT_ERROR(registered(ring.descriptor, IORING_REGISTER_FILES, NOWHERE, 1), EFAULT);
    EXPECT_ERROR(registered(ring.descriptor, IORING_REGISTER_FILES, &file, 0), EINVAL);
    EXPECT_ERROR(registered(ring.descriptor, IORING_UNREGISTER_FILES, NULL, 0), ENXIO);
    EXPECT_ERROR(registered(ring.descriptor, IORING_UNREGISTER_BUFFERS, NULL, 0), ENXIO);
    EXPECT_ERROR(registered(ring.descriptor, IORING_REGISTER_EVENTFD, &file, 1), EINVAL);
}

static void nothing_done(void)
{
    struct ring ring;
    if (!make_ring(&ring, 0))
        return;
    for (unsigned turn = 0; turn < 20; turn++) {
        for (unsigned i = 0; i < ENTRIES; i++)
            prepare(&ring, IORING_OP_NOP, -1, NULL, 0, 100 * turn + i);
        EXPECT(submit(&ring, ENTRIES), ENTRIES);
        for (unsigned i = 0; i < ENTRIES; i++)
            expect_result(&ring, 100 * turn + i, 0);
    }
}

static void bad_entries(void)
{
    struct ring ring;
    char byte;
    if (!make_ring(&ring, 0))
        return;
    EXPECT(done_at_once(&ring, 255, -1, NULL, 0), -EINVAL);
    EXPECT(done_at_once(&ring, IORING_OP_READ, 900, &byte, 1), -EBADF);
    prepare(&ring, IORING_OP_NOP, -1, NULL, 0, 1)->flags = 1 << 7;
    EXPECT(submit(&ring, 1), 1);
    expect_result(&ring, 1, -EINVAL);
    prepare(&ring, IORING_OP_READ, 0, &byte, 1, 2)->flags = IOSQE_FIXED_FILE;
    EXPECT(submit(&ring, 1), 1);
    expect_result(&ring, 2, -EBADF);
    /* An index beyond the entries is dropped, and counted. */
    unsigned *tail = word(&ring, ring.parameters.sq_off.tail);
    word(&ring, ring.parameters.sq_off.array)[*tail & (ENTRIES - 1)] = ENTRIES + 5;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    EXPECT(enter(ring.descriptor, 1, 0, 0), 0);
    EXPECT(*word(&ring, ring.parameters.sq_off.dropped), 1);
}

static void files_read_and_written(void)
{
    struct ring ring;
    char text[16] = {0};
    int file = memfd_create("content", 0);
    struct iovec parts[2] = {{text, 4}, {text + 8, 4}};
    if (!make_ring(&ring, 0))
        return;
    EXPECT(done_at_once(&ring, IORING_OP_WRITE, file, "abcdefgh", 8), 8);
    EXPECT(done_at_once(&ring, IORING_OP_READ, file, text, 8), 8);
    EXPECT(memcmp(text, "abcdefgh", 9), 0);
    EXPECT(done_at_once(&ring, IORING_OP_READV, file, parts, 2), 8);
    EXPECT(memcmp(text, "abcdefghefgh", 13), 0);
    prepare(&ring, IORING_OP_READ, file, text, 16, 1)->off = 6;
    EXPECT(submit(&ring, 1), 1);
    expect_result(&ring, 1, 2);
    EXPECT(text[0], 'g');
    EXPECT(done_at_once(&ring, IORING_OP_FSYNC, file, NULL, 0), 0);
    EXPECT(done_at_once(&ring, IORING_OP_READ, file, NOWHERE, 8), -EFAULT);
}

static void files_opened_and_closed(void)
{
    struct ring ring;
    struct statx facts = {0};
    if (!make_ring(&ring, 0))
        return;
    EXPECT(done_at_once(&ring, IORING_OP_OPENAT, AT_FDCWD, "/no/such/file", 0), -ENOENT);
    int file = done_at_once(&ring, IORING_OP_OPENAT, AT_FDCWD, "/proc/self/exe", 0);
    EXPECT_TRUE(file >= 0);
    EXPECT_TRUE(fcntl(file, F_GETFD) >= 0);
    prepare(&ring, IORING_OP_STATX, AT_FDCWD, "/proc/self/exe", STATX_SIZE, 1)->off = (uintptr_t)&facts;
    EXPECT(submit(&ring, 1), 1);
    expect_result(&ring, 1, 0);
    EXPECT_TRUE(facts.stx_size > 1000);
    EXPECT(done_at_once(&ring, IORING_OP_CLOSE, file, NULL, 0), 0);
    EXPECT_ERROR(fcntl(file, F_GETFD), EBADF);
    EXPECT(done_at_once(&ring, IORING_OP_CLOSE, file, NULL, 0), -EBADF);
}

static void linked_in_order(void)
{
    struct ring ring;
    char text[8] = {0};
    int file = memfd_create("linked", 0);
    if (!make_ring(&ring, 0))
        return;
    for (unsigned i = 0; i < 4; i++) {
        struct io_uring_sqe *entry = prepare(&ring, IORING_OP_WRITE, file, &"abcd"[i], 1, i);
        entry->flags = IOSQE_IO_LINK;
        entry->off = i;
    }
    prepare(&ring, IORING_OP_READ, file, text, 4, 4);
    EXPECT(submit(&ring, 5), 5);
    for (unsigned i = 0; i < 5; i++)
        expect_result(&ring, i, i < 4 ? 1 : 4);
    EXPECT(memcmp(text, "abcd", 5), 0);
}

static void link_broken(void)
{
    struct ring ring;
    char byte;
    int file = memfd_create("empty", 0);
    if (!make_ring(&ring, 0))
        return;
    prepare(&ring, IORING_OP_NOP, -1, NULL, 0, 1)->flags = IOSQE_IO_LINK;
    prepare(&ring, IORING_OP_READ, file, &byte, 1, 2)->flags = IOSQE_IO_LINK; /* Short: there is nothing. */
    prepare(&ring, IORING_OP_NOP, -1, NULL, 0, 3)->flags = IOSQE_IO_LINK;
    prepare(&ring, IORING_OP_NOP, -1, NULL, 0, 4);
    prepare(&ring, IORING_OP_NOP, -1, NULL, 0, 5);
    EXPECT(submit(&ring, 5), 5);
    int results[6] = {0};
    for (int i = 0; i < 5; i++) {
        struct result found = result_of(&ring);
        results[found.user_data % 6] = found.res + 1000;
    }
    EXPECT(results[1], 1000);
    EXPECT(results[2], 1000);
    EXPECT(results[3], 1000 - ECANCELED);
    EXPECT(results[4], 1000 - ECANCELED);
    EXPECT(results[5], 1000);
}

static void drained(void)
{
    struct ring ring;
    struct gate gate = make_gate();
    char byte = 0;
    if (!make_ring(&ring, 0))
        return;
    prepare(&ring, IORING_OP_READ, gate.ends[0], &byte, 1, 1);
    prepare(&ring, IORING_OP_NOP, -1, NULL, 0, 2)->flags = IOSQE_IO_DRAIN;
    EXPECT(submit(&ring, 0), 2);
    EXPECT(*word(&ring, ring.parameters.cq_off.tail), 0);
    open_gate(gate);
    expect_result(&ring, 1, 1);
    expect_result(&ring, 2, 0);
    EXPECT(byte, 'x');
}

static void limits_of_time(void)
{
    struct ring ring;
    struct __kernel_timespec soon = {0, 2000000}, bad = {0, -1}, later = {50, 0};
    if (!make_ring(&ring, 0))
        return;
    EXPECT(done_at_once(&ring, IORING_OP_TIMEOUT, -1, &soon, 1), -ETIME);
    EXPECT(done_at_once(&ring, IORING_OP_TIMEOUT, -1, &bad, 1), -EINVAL);
    EXPECT(done_at_once(&ring, IORING_OP_TIMEOUT, -1, NOWHERE, 1), -EFAULT);
    EXPECT(done_at_once(&ring, IORING_OP_TIMEOUT, -1, &soon, 2), -EINVAL);
    /* After so many others. */
    prepare(&ring, IORING_OP_TIMEOUT, -1, &later, 1, 1)->off = 2;
    prepare(&ring, IORING_OP_NOP, -1, NULL, 0, 2);
    prepare(&ring, IORING_OP_NOP, -1, NULL, 0, 3);
    EXPECT(submit(&ring, 3), 3);
    expect_result(&ring, 2, 0);
    expect_result(&ring, 3, 0);
    expect_result(&ring, 1, 0);
    /* Taken back by its data. */
    prepare(&ring, IORING_OP_TIMEOUT, -1, &later, 1, 7);
    prepare(&ring, IORING_OP_TIMEOUT_REMOVE, -1, (void *)7, 0, 8);
    EXPECT(submit(&ring, 2), 2);
    int n_right = 0;
    for (int i = 0; i < 2; i++) {
        struct result found = result_of(&ring);
        n_right += (found.user_data == 7 && found.res == -ECANCELED) || (found.user_data == 8 && found.res == 0);
    }
    EXPECT(n_right, 2);
    EXPECT(done_at_once(&ring, IORING_OP_TIMEOUT_REMOVE, -1, (void *)7, 0), -ENOENT);
}

static void limit_of_a_link(void)
{
    struct ring ring;
    struct gate gate = make_gate();
    struct __kernel_timespec soon = {0, 2000000};
    char byte;
    if (!make_ring(&ring, 0))
        return;
    prepare(&ring, IORING_OP_READ, gate.ends[0], &byte, 1, 1)->flags = IOSQE_IO_LINK;
    prepare(&ring, IORING_OP_LINK_TIMEOUT, -1, &soon, 1, 2);
    EXPECT(submit(&ring, 2), 2);
    int results[3] = {0};
    for (int i = 0; i < 2; i++) {
        struct result found = result_of(&ring);
        results[found.user_data % 3] = found.res;
    }
    EXPECT_TRUE(results[1] == -ECANCELED || results[1] == -EINTR);
    EXPECT(results[2], -ETIME);
}

static void polled(void)
{
    struct ring ring;
    struct gate gate = make_gate();
    if (!make_ring(&ring, 0))
        return;
    prepare(&ring, IORING_OP_POLL_ADD, gate.ends[0], NULL, 0, 1)->poll32_events = POLLIN;
    EXPECT(submit(&ring, 0), 1);
    EXPECT(*word(&ring, ring.parameters.cq_off.tail), 0);
    open_gate(gate);
    expect_result(&ring, 1, POLLIN);
    pass_gate(gate);
    prepare(&ring, IORING_OP_POLL_ADD, gate.ends[0], NULL, 0, 2)->poll32_events = POLLIN;
    prepare(&ring, IORING_OP_POLL_REMOVE, -1, (void *)2, 0, 3);
    EXPECT(submit(&ring, 2), 2);
    long sum = 0;
    for (int i = 0; i < 2; i++)
        sum += result_of(&ring).res;
    EXPECT(sum, -ECANCELED);
}

static void canceled(void)
{
    struct ring ring;
    struct gate gate = make_gate();
    char byte;
    if (!make_ring(&ring, 0))
        return;
    prepare(&ring, IORING_OP_READ, gate.ends[0], &byte, 1, 5);
    EXPECT(submit(&ring, 0), 1);
    prepare(&ring, IORING_OP_ASYNC_CANCEL, -1, (void *)5, 0, 6);
    EXPECT(submit(&ring, 0), 1);
    int results[7] = {0};
    for (int i = 0; i < 2; i++) {
        struct result found = result_of(&ring);
        results[found.user_data % 7] = found.res;
    }
    EXPECT(results[5], -ECANCELED);
    EXPECT(results[6], 0);
    EXPECT(done_at_once(&ring, IORING_OP_ASYNC_CANCEL, -1, (void *)5, 0), -ENOENT);
}

static void sent_and_received(void)
{
    struct ring ring;
    int ends[2];
    char text[8] = {0};
    struct iovec part = {text, sizeof text};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    if (!make_ring(&ring, 0))
        return;
    prepare(&ring, IORING_OP_RECV, ends[0], text, sizeof text, 1);
    EXPECT(submit(&ring, 0), 1);
    EXPECT(done_at_once(&ring, IORING_OP_SEND, ends[1], "hello", 5) == 5 || text[0] == 'h', 1);
    /* Whichever of both results was first. */
    (void)result_of(&ring);
    EXPECT(memcmp(text, "hello", 6), 0);
    EXPECT(write(ends[1], "world", 5), 5);
    EXPECT(done_at_once(&ring, IORING_OP_RECVMSG, ends[0], &message, 1), 5);
    EXPECT(memcmp(text, "world", 6), 0);
    EXPECT(done_at_once(&ring, IORING_OP_SHUTDOWN, ends[1], NULL, SHUT_WR), 0);
    EXPECT(done_at_once(&ring, IORING_OP_RECV, ends[0], text, sizeof text), 0);
}

/* By a thread of the kernel's in this process, which a recording must leave alone. */
static void done_by_workers(void)
{
    struct ring ring;
    struct gate gate = make_gate();
    char bytes[4] = {0};
    int file = memfd_create("by workers", 0);
    EXPECT(write(file, "abcd", 4), 4);
    if (!make_ring(&ring, 0))
        return;
    for (unsigned i = 0; i < 4; i++) {
        struct io_uring_sqe *entry = prepare(&ring, IORING_OP_READ, file, &bytes[i], 1, i);
        entry->flags = IOSQE_ASYNC;
        entry->off = i;
    }
    EXPECT(submit(&ring, 4), 4);
    for (unsigned i = 0; i < 4; i++)
        EXPECT(result_of(&ring).res, 1);
    EXPECT(memcmp(bytes, "abcd", 4), 0);
    prepare(&ring, IORING_OP_READ, gate.ends[0], bytes, 1, 9)->flags = IOSQE_ASYNC;
    EXPECT(submit(&ring, 0), 1);
    pid_t child = fork(); /* With a worker that waits. */
    if (child == 0)
        _exit(7);
    EXPECT(ended(child), 7);
    open_gate(gate);
    expect_result(&ring, 9, 1);
}

static void submitted_by_a_kernel_thread(void)
{
    struct ring ring;
    if (!make_ring(&ring, IORING_SETUP_SQPOLL))
        return;
    for (unsigned i = 0; i < 5; i++) {
        prepare(&ring, IORING_OP_NOP, -1, NULL, 0, i);
        __atomic_store_n(word(&ring, ring.parameters.sq_off.tail), ring.n_made, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(word(&ring, ring.parameters.sq_off.flags), __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP)
            EXPECT(enter(ring.descriptor, 0, 0, IORING_ENTER_SQ_WAKEUP), 0);
        expect_result(&ring, i, 0);
    }
}

static void registered_files(void)
{
    struct ring ring;
    char byte = 0;
    int files[2] = {memfd_create("first", 0), -1}, second = memfd_create("second", 0);
    struct io_uring_files_update update = {.offset = 1, .fds = (uintptr_t)&second};
    EXPECT(write(files[0], "a", 1) + write(second, "b", 1), 2);
    if (!make_ring(&ring, 0))
        return;
    EXPECT(registered(ring.descriptor, IORING_REGISTER_FILES, files, 2), 0);
    EXPECT_ERROR(registered(ring.descriptor, IORING_REGISTER_FILES, files, 2), EBUSY);
    EXPECT(registered(ring.descriptor, IORING_REGISTER_FILES_UPDATE, &update, 1), 1);
    close(files[0]);
    close(second);
    for (int i = 0; i < 2; i++) {
        prepare(&ring, IORING_OP_READ, i, &byte, 1, 1)->flags = IOSQE_FIXED_FILE;
        EXPECT(submit(&ring, 1), 1);
        expect_result(&ring, 1, 1);
        EXPECT(byte, i ? 'b' : 'a');
    }
    EXPECT(registered(ring.descriptor, IORING_UNREGISTER_FILES, NULL, 0), 0);
}

static void registered_memory(void)
{
    struct ring ring;
    char *memory = pages(1, READ_WRITE);
    struct iovec part = {memory, PAGE}, bad = {NOWHERE, PAGE};
    int file = memfd_create("content", 0);
    EXPECT(write(file, "abcd", 4), 4);
    if (!make_ring(&ring, 0))
        return;
    EXPECT_ERROR(registered(ring.descriptor, IORING_REGISTER_BUFFERS, &bad, 1), EFAULT);
    EXPECT(registered(ring.descriptor, IORING_REGISTER_BUFFERS, &part, 1), 0);
    EXPECT(done_at_once(&ring, IORING_OP_READ_FIXED, file, memory + 100, 4), 4);
    EXPECT(memcmp(memory + 100, "abcd", 4), 0);
    EXPECT(done_at_once(&ring, IORING_OP_READ_FIXED, file, memory + PAGE, 4), -EFAULT);
    EXPECT(registered(ring.descriptor, IORING_UNREGISTER_BUFFERS, NULL, 0), 0);
    EXPECT_TRUE(done_at_once(&ring, IORING_OP_READ_FIXED, file, memory, 4) < 0);
}

static void told_by_a_descriptor(void)
{
    struct ring ring;
    uint64_t count = 0;
    int event = eventfd(0, EFD_NONBLOCK);
    if (!make_ring(&ring, 0))
        return;
    EXPECT(registered(ring.descriptor, IORING_REGISTER_EVENTFD, &event, 1), 0);
    EXPECT(done_at_once(&ring, IORING_OP_NOP, -1, NULL, 0), 0);
    EXPECT(read(event, &count, sizeof count), sizeof count);
    EXPECT(count, 1);
    EXPECT(registered(ring.descriptor, IORING_UNREGISTER_EVENTFD, NULL, 0), 0);
    struct pollfd ready = {ring.descriptor, POLLIN, 0};
    EXPECT(poll(&ready, 1, 0), 0);
    prepare(&ring, IORING_OP_NOP, -1, NULL, 0, 1);
    EXPECT(submit(&ring, 0), 1);
    EXPECT(poll(&ready, 1, 0), 1);
}

static void more_results_than_room(void)
{
    struct ring ring;
    if (!make_ring(&ring, 0))
        return;
    for (unsigned i = 0; i < 5 * ENTRIES; i++) {
        prepare(&ring, IORING_OP_NOP, -1, NULL, 0, i);
        EXPECT(submit(&ring, 0), 1);
    }
    for (unsigned i = 0; i < 5 * ENTRIES; i++)
        expect_result(&ring, i, 0);
}

static void note(int number)
{
    (void)number;
}

static void wait_interrupted(void)
{
    struct ring ring;
    struct sigaction action = {.sa_handler = note};
    sigaction(SIGALRM, &action, NULL);
    if (!make_ring(&ring, 0))
        return;
    ualarm(2000, 1000);
    EXPECT_ERROR(enter(ring.descriptor, 0, 1, IORING_ENTER_GETEVENTS), EINTR);
    ualarm(0, 0);
}

static void code_read_from_files(void)
{
    struct ring ring;
    unsigned char code[6] = {0xb8, 0, 0, 0, 0, 0xc3}; /* mov eax, VALUE; ret */
    int file = memfd_create("code", 0);
    char *memory = pages(1, READ_WRITE | PROT_EXEC);
    if (!make_ring(&ring, 0))
        return;
    for (int value = 0; value < 20; value++) {
        code[1] = (unsigned char)value;
        EXPECT(pwrite(file, code, sizeof code, 0), sizeof code);
        EXPECT(done_at_once(&ring, IORING_OP_READ, file, memory, sizeof code), sizeof code);
        EXPECT(((int (*)(void))memory)(), value);
    }
}

static void ended_with_work_left(void)
{
    pid_t child = fork();
    if (child == 0) {
        struct ring ring;
        struct gate gate = make_gate();
        static char bytes[2];
        if (!make_ring(&ring, 0))
            _exit(7);
        prepare(&ring, IORING_OP_READ, gate.ends[0], bytes, 1, 1);
        prepare(&ring, IORING_OP_READ, gate.ends[0], bytes + 1, 1, 2)->flags = IOSQE_ASYNC;
        _exit(submit(&ring, 0) == 2 ? 7 : 8);
    }
    EXPECT(ended(child), 7);
}

static const struct one_case cases[] = {
    CASE(set_up_errors),
    CASE(enter_errors),
    CASE(registration_errors),
    CASE(nothing_done),
    CASE(bad_entries),
    CASE(files_read_and_written),
    CASE(files_opened_and_closed),
    CASE(linked_in_order),
    CASE(link_broken),
    CASE(drained),
    CASE(limits_of_time),
    CASE(limit_of_a_link),
    CASE(polled),
    CASE(canceled),
    CASE(sent_and_received),
    CASE(done_by_workers),
    CASE(submitted_by_a_kernel_thread),
    CASE(registered_files),
    CASE(registered_memory),
    CASE(told_by_a_descriptor),
    CASE(more_results_than_room),
    CASE(wait_interrupted),
    CASE(code_read_from_files),
    CASE(ended_with_work_left),
};

int main(int count, char **arguments)
{
    (void)count;
    return RUN_CASES(cases, arguments + 1);
}
