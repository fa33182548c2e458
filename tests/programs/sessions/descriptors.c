/* Random operations on descriptors, in three processes, and what /proc says of them now and then.
 *
 * Arguments: seed, operations of each process, a folder of its own. At each checkpoint a process says what its descriptors
 * are, a line each: "CHECK pid number", then "FD number link closes"; the call fchdir(-1000 - number) comes right before.
 * What processes do to each other, by names of files and by messages, they do one after the other: what came first is
 * no question of luck.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOWEST = 10, HIGHEST = 60, MOST = 64, EVERY = 250 };

static unsigned long state;
static const char *folder;
static int log_descriptor, lock_descriptor;

static unsigned draw(unsigned below)
{
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33) % below;
}

static int any(void) { return LOWEST + (int)draw(HIGHEST - LOWEST); }

/* What the system gave goes where the others are, so that there is something to hit. */
static void keep(int descriptor)
{
    if (descriptor < 0 || descriptor >= LOWEST)
        return;
    fcntl(descriptor, draw(2) ? F_DUPFD_CLOEXEC : F_DUPFD, any());
    close(descriptor);
}

static void name_file(char *path) { sprintf(path, "%s/f%u", folder, draw(12)); }

static void check(int number)
{
    char text[1 << 15], path[300], link[300];
    int length = sprintf(text, "CHECK %d %d\n", (int)getpid(), number);
    /* Nobody else renames anything meanwhile. */
    flock(lock_descriptor, LOCK_EX);
    syscall(SYS_fchdir, -1000 - number);
    for (int descriptor = 0; descriptor < MOST; descriptor++) {
        sprintf(path, "/proc/self/fd/%d", descriptor);
        long size = readlink(path, link, sizeof link - 1);
        if (size < 0)
            continue;
        link[size] = 0;
        length += sprintf(text + length, "FD %d %d %s\n", descriptor, fcntl(descriptor, F_GETFD) & FD_CLOEXEC, link);
    }
    flock(lock_descriptor, LOCK_UN);
    if (write(log_descriptor, text, (size_t)length) != length)
        abort();
}

static void pass(int over, int descriptor)
{
    char byte = 0, control[CMSG_SPACE(2 * sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int both[2] = {descriptor, log_descriptor};
    head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof both);
    memcpy(CMSG_DATA(head), both, sizeof both);
    sendmsg(over, &message, MSG_DONTWAIT);
}

static void receive(int over)
{
    char byte = 0, control[CMSG_SPACE(2 * sizeof(int))];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    recvmsg(over, &message, MSG_DONTWAIT | (draw(2) ? MSG_CMSG_CLOEXEC : 0));
}

static void step(const int *ends)
{
    char path[300], other[300];
    int two[2];
    unsigned what = draw(22);
    int is_shared = what <= 2 || what >= 18;
    if (is_shared)
        flock(lock_descriptor, LOCK_EX);
    switch (what) {
    case 0:
    case 1:
    case 2:
        name_file(path);
        keep(open(path, O_RDWR | O_CREAT | (draw(2) ? O_CLOEXEC : 0), 0600));
        break;
    case 3: keep(dup(any())); break;
    case 4: dup2(any(), any()); break;
    case 5: dup3(any(), any(), draw(2) ? O_CLOEXEC : 0); break;
    case 6: fcntl(any(), draw(2) ? F_DUPFD : F_DUPFD_CLOEXEC, any()); break;
    case 7: fcntl(any(), F_SETFD, draw(2) ? FD_CLOEXEC : 0); break;
    case 8: ioctl(any(), draw(2) ? FIOCLEX : FIONCLEX); break;
    case 9:
    case 10: close(any()); break;
    case 11: {
        unsigned first = (unsigned)any();
        syscall(SYS_close_range, first, first + draw(4), draw(2) ? CLOSE_RANGE_CLOEXEC : 0);
        break;
    }
    case 12:
        if (pipe2(two, draw(2) ? O_CLOEXEC : 0) == 0)
            keep(two[0]), keep(two[1]);
        break;
    case 13:
        if (socketpair(AF_UNIX, SOCK_STREAM | (draw(2) ? SOCK_CLOEXEC : 0), 0, two) == 0)
            keep(two[0]), keep(two[1]);
        break;
    case 14: keep(eventfd(0, draw(2) ? EFD_CLOEXEC : 0)); break;
    case 15: keep(draw(2) ? epoll_create1(EPOLL_CLOEXEC) : timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)); break;
    case 16: keep(memfd_create("made", draw(2) ? MFD_CLOEXEC : 0)); break;
    case 17: keep(socket(AF_INET, SOCK_DGRAM | (draw(2) ? SOCK_CLOEXEC : 0), 0)); break;
    case 18:
        name_file(path), name_file(other);
        rename(path, other);
        break;
    case 19:
        name_file(path);
        unlink(path);
        break;
    case 20: pass(ends[draw(2)], any()); break;
    default: receive(ends[draw(2)]); break;
    }
    if (is_shared)
        flock(lock_descriptor, LOCK_UN);
}

static void run(unsigned long seed, int n_steps, const int *ends)
{
    char path[300];
    state = seed;
    sprintf(path, "%s/log.%lu", folder, seed);
    close(log_descriptor);
    log_descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    sprintf(path, "%s/lock", folder);
    close(lock_descriptor);
    lock_descriptor = open(path, O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < n_steps; i++) {
        step(ends);
        if (i % EVERY == EVERY - 1)
            check(i / EVERY);
    }
}

int main(int count, char **words)
{
    if (count < 4)
        return 2;
    unsigned long seed = strtoul(words[1], NULL, 10);
    int n_steps = atoi(words[2]), ends[2];
    folder = words[3];
    struct rlimit limit = {MOST, MOST};
    setrlimit(RLIMIT_NOFILE, &limit);
    /* Below all that is drawn. */
    log_descriptor = open("/dev/null", O_WRONLY), lock_descriptor = open("/dev/null", O_WRONLY);
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends))
        return 1;
    /* What is there already is inherited. */
    state = seed;
    for (int i = 0; i < 40; i++)
        step(ends);
    for (unsigned long child = 1; child < 3; child++)
        if (fork() == 0) {
            run(seed * 3 + child, n_steps, ends);
            _exit(0);
        }
    run(seed * 3, n_steps, ends);
    while (wait(NULL) > 0)
        ;
    return 0;
}
