/* Makes calls with each structure that is described, with good and bad addresses; what they come to does not matter.

   What differs from run to run is left out by who compares: times, process numbers, addresses. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define BAD ((void *)-1L)
#define CALL(name, ...) syscall(SYS_##name, ##__VA_ARGS__)

static int ends[2], pair[2];

static void handle(int signal) { (void)signal; }

static void vectors(void) {
    char first[64], second[64];
    struct iovec parts[] = {{"hello ", 6}, {"world\n", 6}, {"", 0}, {NULL, 0}};
    struct iovec wrong[] = {{"ok", 2}, {BAD, 5}};
    struct iovec room[] = {{first, 4}, {second, 60}};
    struct iovec much[70];
    CALL(writev, ends[1], parts, 2);
    CALL(writev, ends[1], parts, 4);
    CALL(writev, -1, parts, 3);
    CALL(writev, ends[1], BAD, 2);
    CALL(writev, ends[1], parts, 0);
    CALL(writev, ends[1], wrong, 2);
    CALL(readv, ends[0], room, 2);
    CALL(readv, -1, room, 2);
    for (int i = 0; i < 70; i++) much[i] = (struct iovec){"x", 1};
    CALL(writev, -1, much, 70);
    CALL(process_vm_readv, getpid(), room, 1, parts, 1, 0);
    CALL(process_vm_writev, getpid(), parts, 1, room, 1, 0);
    CALL(vmsplice, ends[1], parts, 1, 0);
}

static void messages(void) {
    char control[64] = {0}, first[64], second[64];
    struct iovec parts[] = {{"hello ", 6}, {"world\n", 6}}, room[] = {{first, 4}, {second, 60}};
    struct sockaddr_un from;
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = control};
    struct msghdr answer = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = room, .msg_iovlen = 2, .msg_control = control};
    struct cmsghdr *head = (struct cmsghdr *)control;
    struct ucred who = {getpid(), getuid(), getgid()};
    struct mmsghdr several[2] = {{.msg_hdr = {.msg_iov = parts, .msg_iovlen = 1}}, {.msg_hdr = {.msg_iov = parts + 1, .msg_iovlen = 1}}};
    int on = 1;
    CALL(sendmsg, pair[0], &message, 0);
    *head = (struct cmsghdr){CMSG_LEN(sizeof ends), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(head), ends, sizeof ends);
    message.msg_controllen = CMSG_SPACE(sizeof ends);
    CALL(sendmsg, pair[0], &message, 0);
    CALL(sendmsg, -1, &message, MSG_DONTWAIT);
    CALL(sendmsg, pair[0], BAD, 0);
    answer.msg_controllen = sizeof control;
    CALL(recvmsg, pair[1], &answer, 0);
    CALL(recvmsg, pair[1], &answer, MSG_DONTWAIT);
    CALL(setsockopt, pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    *head = (struct cmsghdr){CMSG_LEN(sizeof who), SOL_SOCKET, SCM_CREDENTIALS};
    memcpy(CMSG_DATA(head), &who, sizeof who);
    message.msg_controllen = CMSG_SPACE(sizeof who);
    CALL(sendmsg, pair[0], &message, 0);
    answer.msg_controllen = sizeof control;
    CALL(recvmsg, pair[1], &answer, 0);
    CALL(sendmmsg, pair[0], several, 2, 0);
    several[0].msg_hdr.msg_iov = room;
    several[1].msg_hdr.msg_iov = room + 1;
    CALL(recvmmsg, pair[1], several, 2, MSG_DONTWAIT, NULL);
}

static void events(void) {
    int set = epoll_create1(0);
    struct epoll_event wanted = {EPOLLIN | EPOLLET, {.u64 = 0x500000007}}, found[4];
    struct pollfd watched[] = {{ends[0], POLLIN, 0}, {ends[1], POLLOUT | POLLIN, 0}, {-1, 0, 0}};
    struct timespec short_time = {0, 5};
    struct timeval none = {0, 10};
    sigset_t blocked;
    fd_set in, out;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    CALL(epoll_ctl, set, EPOLL_CTL_ADD, ends[0], &wanted);
    CALL(epoll_ctl, set, EPOLL_CTL_DEL, ends[0], &wanted);
    CALL(epoll_ctl, set, EPOLL_CTL_ADD, ends[0], &wanted);
    CALL(epoll_ctl, set, EPOLL_CTL_MOD, ends[0], BAD);
    CALL(writev, ends[1], &(struct iovec){"x", 1}, 1);
    CALL(epoll_wait, set, found, 4, 0);
    CALL(epoll_wait, set, found, 4, 0);
    CALL(epoll_wait, set, BAD, 4, 0);
    CALL(poll, watched, 3, 0);
    CALL(poll, watched, 1, 5);
    CALL(poll, BAD, 1, 0);
    CALL(poll, NULL, 0, 1);
    CALL(ppoll, watched, 2, &short_time, NULL, 8);
    CALL(ppoll, watched, 3, &short_time, &blocked, 8);
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(ends[0], &in);
    FD_SET(ends[1], &out);
    CALL(select, ends[1] + 1, &in, &out, NULL, NULL);
    FD_ZERO(&in);
    FD_SET(set, &in);
    CALL(epoll_ctl, set, EPOLL_CTL_DEL, ends[0], NULL);
    CALL(select, set + 1, &in, NULL, NULL, &none);
    FD_SET(set, &in);
    CALL(pselect6, set + 1, &in, NULL, NULL, &short_time, &(struct { sigset_t *mask; size_t size; }){&blocked, 8});
    close(set);
}

static void files(void) {
    struct stat found;
    struct statx more;
    struct statfs system;
    struct flock lock = {F_RDLCK, SEEK_SET, 0, 10, 0};
    struct open_how how = {O_RDONLY | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS};
    struct timespec times[2] = {{7, 8}, {5, 6}};
    struct timeval old_times[2] = {{1, 2}, {3, 4}};
    struct {
        struct file_handle head;
        char rest[128];
    } handle = {.head.handle_bytes = 128};
    long offset = 5;
    int mount;
    int file = (int)CALL(memfd_create, "file", 0);
    CALL(newfstatat, AT_FDCWD, "/", &found, 0);
    CALL(fstat, ends[0], &found);
    CALL(stat, "/dev/null", &found);
    CALL(stat, "/dev/null", BAD);
    CALL(lstat, "/no/such", &found);
    CALL(statx, AT_FDCWD, "/etc", 0, STATX_ALL, &more);
    CALL(statx, AT_FDCWD, "/dev/null", AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &more);
    CALL(statfs, "/proc", &system);
    CALL(fstatfs, -1, &system);
    CALL(fcntl, file, F_SETLK, &lock);
    CALL(fcntl, file, F_GETLK, &lock);
    CALL(fcntl, file, F_GETLK, BAD);
    CALL(openat2, AT_FDCWD, "/etc", &how, sizeof how);
    how = (struct open_how){O_RDWR | O_CREAT, 0640, 0};
    CALL(openat2, AT_FDCWD, "/no/such", &how, sizeof how);
    CALL(openat2, AT_FDCWD, "/etc", BAD, sizeof how);
    CALL(utimensat, AT_FDCWD, "/no/such", times, 0);
    CALL(utimes, "/no/such", old_times);
    CALL(name_to_handle_at, AT_FDCWD, "/etc/passwd", &handle, &mount, 0);
    CALL(sendfile, 1, -1, &offset, 4);
    CALL(copy_file_range, -1, &offset, -1, &offset, 5, 0);
    CALL(splice, -1, &offset, -1, NULL, 5, 0);
    CALL(pipe2, BAD, 0);
}

static void limits(void) {
    struct rlimit limit = {8 << 20, 5000};
    struct rusage usage;
    struct utsname names;
    struct sysinfo system;
    cpu_set_t processors;
    struct sched_param parameter = {0};
    struct timespec slice;
    struct {
        unsigned size, policy;
        unsigned long flags;
        int nice;
        unsigned priority;
        unsigned long times[3];
        unsigned least, most;
    } attributes = {0};
    unsigned processor, node, ids[3];
    CALL(setrlimit, RLIMIT_DATA, &limit);
    CALL(getrlimit, RLIMIT_CORE, &limit);
    CALL(prlimit64, 0, RLIMIT_CORE, &limit, &limit);
    CALL(prlimit64, 0, RLIMIT_CORE, BAD, NULL);
    CALL(getrusage, RUSAGE_SELF, &usage);
    CALL(getrusage, RUSAGE_SELF, BAD);
    CALL(uname, &names);
    CALL(uname, BAD);
    CALL(sysinfo, &system);
    CALL(sched_getattr, 0, &attributes, sizeof attributes, 0);
    CALL(sched_getparam, 0, &parameter);
    CALL(sched_setscheduler, 0, SCHED_OTHER, &parameter);
    CALL(sched_rr_get_interval, 0, &slice);
    CALL(sched_getaffinity, 0, sizeof processors, &processors);
    CALL(sched_setaffinity, 0, 8, &processors);
    CALL(getcpu, &processor, &node, NULL);
    CALL(getresuid, ids, ids + 1, ids + 2);
    CALL(getresgid, ids, ids + 1, ids + 2);
}

static void times_and_timers(void) {
    struct timeval now;
    struct timezone zone;
    struct itimerval timer = {{0, 0}, {100, 5}}, before;
    struct itimerspec other = {{0, 0}, {50, 7}}, old;
    struct timex clock = {0};
    struct timespec moment = {0, 1}, rest;
    struct sigevent event = {.sigev_notify = SIGEV_NONE};
    struct tms spent;
    time_t seconds;
    int number, file;
    CALL(gettimeofday, &now, &zone);
    CALL(gettimeofday, BAD, NULL);
    CALL(setitimer, ITIMER_REAL, &timer, &before);
    CALL(getitimer, ITIMER_REAL, &before);
    CALL(setitimer, ITIMER_REAL, BAD, NULL);
    file = timerfd_create(CLOCK_MONOTONIC, 0);
    CALL(timerfd_settime, file, 0, &other, &old);
    CALL(timerfd_gettime, file, &old);
    close(file);
    CALL(timer_create, CLOCK_MONOTONIC, &event, &number);
    CALL(timer_settime, number, 0, &other, &old);
    CALL(timer_gettime, number, &old);
    CALL(timer_delete, number);
    CALL(clock_adjtime, CLOCK_REALTIME, &clock);
    CALL(clock_gettime, CLOCK_MONOTONIC, &moment);
    CALL(clock_getres, CLOCK_MONOTONIC, &moment);
    moment = (struct timespec){0, 1};
    CALL(nanosleep, &moment, &rest);
    CALL(clock_nanosleep, CLOCK_MONOTONIC, 0, &moment, &rest);
    CALL(times, &spent);
    CALL(time, &seconds);
}

static void signals(void) {
    struct sigaction action = {0};
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536}, before;
    struct timespec second = {1, 0}, none = {0, 0};
    siginfo_t found;
    sigset_t set;
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    sigaddset(&action.sa_mask, SIGTERM);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR1, NULL, &action);
    action.sa_handler = SIG_IGN;
    sigaction(SIGUSR2, &action, NULL);
    CALL(rt_sigaction, SIGKILL, BAD, NULL, 8);
    sigfillset(&set);
    CALL(rt_sigprocmask, SIG_BLOCK, &set, &set, 8);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGRTMIN + 3);
    CALL(rt_sigprocmask, SIG_SETMASK, &set, NULL, 8);
    CALL(rt_sigprocmask, SIG_BLOCK, NULL, &set, 8);
    CALL(rt_sigprocmask, SIG_BLOCK, BAD, NULL, 8);
    kill(getpid(), SIGUSR1);
    CALL(rt_sigpending, &set, 8);
    CALL(rt_sigtimedwait, &action.sa_mask, &found, &none, 8);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CALL(rt_sigtimedwait, &set, &found, NULL, 8);
    sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 7});
    CALL(rt_sigtimedwait, &set, &found, &second, 8);
    CALL(signalfd4, -1, &set, 8, 0);
    CALL(sigaltstack, &stack, &before);
    stack.ss_flags = SS_DISABLE;
    CALL(sigaltstack, &stack, &before);
    CALL(sigaltstack, BAD, NULL);
}

static void options(void) {
    struct linger linger = {1, 5};
    struct timeval time = {7, 8};
    struct ucred who;
    struct ip_mreq group = {{0}, {0}};
    struct sockaddr_in address = {.sin_family = AF_INET};
    char room[200];
    int value = 1, length = 4, tcp = socket(AF_INET, SOCK_STREAM, 0);
    unsigned room_bytes = sizeof room;
    CALL(setsockopt, tcp, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    CALL(getsockopt, tcp, SOL_SOCKET, SO_TYPE, &value, &length);
    CALL(setsockopt, tcp, SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value);
    CALL(setsockopt, tcp, SOL_SOCKET, SO_KEEPALIVE, BAD, sizeof value);
    length = sizeof who;
    CALL(getsockopt, pair[0], SOL_SOCKET, SO_PEERCRED, &who, &length);
    CALL(setsockopt, tcp, SOL_TCP, TCP_NODELAY, &value, sizeof value);
    CALL(setsockopt, tcp, SOL_TCP, TCP_CONGESTION, "reno", 4);
    CALL(setsockopt, tcp, SOL_IP, IP_TTL, &value, sizeof value);
    CALL(setsockopt, tcp, SOL_IP, IP_ADD_MEMBERSHIP, &group, sizeof group);
    CALL(setsockopt, tcp, SOL_SOCKET, 999, &value, sizeof value);
    CALL(bind, tcp, &address, sizeof address);
    CALL(getsockname, tcp, room, &room_bytes);
    CALL(listen, tcp, 1);
    room_bytes = sizeof room;
    CALL(accept4, -1, room, &room_bytes, SOCK_NONBLOCK);
    CALL(setsockopt, tcp, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
}

static void locks(void) {
    int word = 1, other = 2;
    struct timespec soon = {0, 1};
    CALL(futex, &word, FUTEX_WAIT_PRIVATE, 2, &soon);
    CALL(futex, &word, FUTEX_WAIT_PRIVATE, 1, &soon);
    CALL(futex, &word, FUTEX_WAIT, 1, BAD);
    CALL(futex, &word, FUTEX_WAKE_PRIVATE, 1);
    CALL(futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 1, &soon, NULL, 5);
    CALL(futex, &word, FUTEX_WAKE_BITSET, 1, NULL, NULL, 7);
    CALL(futex, &word, FUTEX_REQUEUE, 1, 2, &other);
    CALL(futex, &word, FUTEX_CMP_REQUEUE, 1, 2, &other, 1);
    CALL(futex, &word, FUTEX_TRYLOCK_PI);
    CALL(shmget, 0x7fffffff, 4096, IPC_EXCL | 0640);
}

static void requests(void) {
    struct winsize size = {5, 6, 0, 0};
    struct termios settings;
    int value = 1, terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    CALL(ioctl, ends[0], TIOCGWINSZ, &size);
    CALL(ioctl, terminal, TIOCSWINSZ, &size);
    CALL(ioctl, terminal, TIOCGWINSZ, &size);
    CALL(ioctl, terminal, TCGETS, &settings);
    CALL(ioctl, terminal, TCGETS, BAD);
    CALL(ioctl, terminal, TIOCGPTN, &value);
    CALL(ioctl, terminal, TIOCSPTLCK, &value);
    CALL(ioctl, ends[0], FIONREAD, &value);
    value = 0;
    CALL(ioctl, ends[0], FIONBIO, &value);
    CALL(ioctl, ends[0], FIOCLEX);
    CALL(ioctl, ends[0], 0x80085413, &value);
    CALL(ioctl, ends[0], 0x12345678, 5);
    CALL(ioctl, ends[0], 0x1234, 0);
}

/* What lives for a moment is seen by who looks at programs while they run. */
static void end_later(int status) {
    struct timespec moment = {0, 200000000};
    CALL(nanosleep, &moment, NULL);
    _exit(status);
}

static void processes(void) {
    struct io_uring_params ring = {0};
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    struct rusage usage;
    siginfo_t found;
    char *words[] = {"x", "", "-l", NULL}, *none[] = {NULL};
    char *many[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", NULL};
    int status, value;
    pid_t child = fork();
    if (child == 0) end_later(3);
    CALL(waitid, P_PID, child, &found, WEXITED | WNOWAIT, NULL);
    CALL(wait4, child, &status, 0, &usage);
    child = fork();
    if (child == 0) kill(getpid(), SIGKILL);
    CALL(wait4, child, &status, 0, NULL);
    CALL(wait4, -1, &status, 0, NULL);
    child = (pid_t)CALL(clone3, &arguments, sizeof arguments);
    if (child == 0) end_later(0);
    CALL(wait4, child, NULL, 0, NULL);
    CALL(clone3, BAD, sizeof arguments);
    CALL(execve, "/no/such", words, none);
    CALL(execve, "/no/such", BAD, NULL);
    CALL(execve, "/no/such", none, none);
    CALL(execve, "/no/such", many, none);
    CALL(io_uring_setup, 4, &ring);
    CALL(io_uring_setup, 4, BAD);
    CALL(prctl, PR_SET_NAME, "abc");
    CALL(prctl, PR_GET_PDEATHSIG, &value);
    CALL(prctl, PR_GET_PDEATHSIG, BAD);
    CALL(prctl, PR_SET_PDEATHSIG, SIGTERM);
    CALL(prctl, PR_CAPBSET_READ, 3);
    CALL(prctl, PR_GET_CHILD_SUBREAPER, &value);
    CALL(prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 3, 0, 0);
    CALL(prctl, PR_SET_MM, PR_SET_MM_START_CODE, 2, 3, 4);
    CALL(prctl, PR_GET_SPECULATION_CTRL, 0, 0, 0, 0);
    CALL(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int main(void) {
    CALL(pipe, ends);
    CALL(socketpair, AF_UNIX, SOCK_STREAM, 0, pair);
    vectors();
    messages();
    events();
    files();
    limits();
    times_and_timers();
    signals();
    options();
    requests();
    locks();
    processes();
    return 0;
}
