/* what: signals that the kernel sends: SIGPIPE, SIGIO with its own number, SIGURG, SIGXFSZ, SIGXCPU, SIGTTOU, SIGSYS, SIGWINCH
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static volatile sig_atomic_t n, last, code, band, descriptor;

static void handler(int number, siginfo_t *info, void *context)
{
    (void)context;
    n++;
    last = number;
    code = info->si_code;
    band = (int)info->si_band;
    descriptor = info->si_fd;
}

static void show(const char *what)
{
    while (n == 0)
        ;
    printf("%s: signal %d code %d\n", what, last >= SIGRTMIN ? 1000 + last - SIGRTMIN : last, code);
    n = 0;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    static const int signals[] = {SIGPIPE, SIGIO, SIGURG, SIGXFSZ, SIGXCPU, SIGWINCH};
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    sigaction(SIGRTMIN + 4, &action, NULL);
    int tube[2], pair[2];
    if (pipe(tube) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return 1;
    for (int round = 0; round < 2; round++) {
        int own[2];
        if (pipe(own) != 0)
            return 1;
        close(own[0]);
        errno = 0;
        ssize_t written = write(own[1], "x", 1);
        printf("write %zd %s\n", written, strerrorname_np(errno));
        close(own[1]);
        show("broken pipe");
        fcntl(pair[0], F_SETFL, O_ASYNC | O_NONBLOCK);
        fcntl(pair[0], F_SETOWN, getpid());
        fcntl(pair[0], F_SETSIG, round ? SIGRTMIN + 4 : 0);
        if (write(pair[1], "x", 1) != 1)
            return 1;
        show("input");
        if (round)
            printf("band %x descriptor %d\n", band, descriptor == pair[0]);
        fcntl(pair[0], F_SETFL, 0);
        char byte;
        if (read(pair[0], &byte, 1) != 1)
            return 1;
    }
    FILE *file = tmpfile();
    struct rlimit limit, old;
    getrlimit(RLIMIT_FSIZE, &old);
    limit = (struct rlimit){10, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    errno = 0;
    ssize_t size = write(fileno(file), "0123456789abcdef", 16);
    printf("write %zd\n", size);
    size = write(fileno(file), "x", 1);
    int error = errno;
    setrlimit(RLIMIT_FSIZE, &old);
    printf("write %zd %s\n", size, strerrorname_np(error));
    show("file size");
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    printf("terminal %d\n", terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    return 0;
}
