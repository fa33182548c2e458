/* What is easily told wrong: descriptors that other kinds of calls change, a child that makes a child, a connection that is not waited for,
 * functions that fail.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) int conn_open(const char *path) { return open(path, O_RDONLY); }

__attribute__((noinline)) void *conn_find(const char *name) { return name[0] == 'a' ? (void *)name : NULL; }

static void change_descriptors(const char *path) {
    int ends[2];
    char bytes[8];
    int file = open(path, O_RDONLY | O_CREAT, 0600);
    close(file);
    if (pipe(ends) || write(ends[1], "pipepipe", 8) != 8 || read(ends[0], bytes, 8) != 8)
        _exit(1);
    // Of the same number as the file, or this says nothing.
    printf("same %d\n", ends[0] == file);
    close(ends[0]);
    close(ends[1]);
}

// A child that has its parent's memory, and descriptors of its own.
static void open_in_child(void) {
    char byte;
    int file = open("/etc/passwd", O_RDONLY);
    if (vfork() == 0) {
        dup2(open("/etc/hosts", O_RDONLY), file);
        execl("/bin/cat", "cat", "-", NULL);
        _exit(1);
    }
    wait(NULL);
    printf("read %zd\n", pread(file, &byte, 1, 0));
}

// A call that would be made again behind its handler, which leaves it by a jump.
static sigjmp_buf outside;

static void leave(int signal) {
    (void)signal;
    siglongjmp(outside, 1);
}

static void jump_out(void) {
    int ends[2];
    char byte;
    struct sigaction action = {.sa_handler = leave, .sa_flags = SA_RESTART};
    struct itimerval soon = {{0, 0}, {0, 30000}};
    if (pipe(ends))
        _exit(1);
    sigaction(SIGALRM, &action, NULL);
    for (volatile int turn = 0; turn < 3; turn++) {
        setitimer(ITIMER_REAL, &soon, NULL);
        if (!sigsetjmp(outside, 1) && read(ends[0], &byte, 1) == 1)
            _exit(1);
    }
}

static void make_children(void) {
    if (fork() == 0) {
        if (fork() == 0)
            _exit(0);
        wait(NULL);
        _exit(0);
    }
    wait(NULL);
}

static void connect_later(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    bind(server, (struct sockaddr *)&address, size);
    listen(server, 1);
    getsockname(server, (struct sockaddr *)&address, &size);
    printf("port %d\n", ntohs(address.sin_port));
    connect(client, (struct sockaddr *)&address, size);
    struct pollfd ready = {client, POLLOUT, 0};
    poll(&ready, 1, 10000);
    getsockname(client, (struct sockaddr *)&address, &size);
    printf("sent %zd\n", send(client, "x", 1, 0));
}

int main(int count, char **words) {
    const char *what = count > 2 ? words[1] : "";
    if (!strcmp(what, "descriptors"))
        change_descriptors(words[2]);
    else if (!strcmp(what, "children"))
        make_children();
    else if (!strcmp(what, "connect"))
        connect_later();
    else if (!strcmp(what, "vfork"))
        open_in_child();
    else if (!strcmp(what, "jump"))
        jump_out();
    else if (!strcmp(what, "forever"))
        for (int file = open(words[2], O_RDONLY | O_CREAT, 0600);;)
            lseek(file, 0, SEEK_SET);
    else {
        int first = conn_open("/no/such"), second = conn_open("/dev/null");
        void *third = conn_find("b"), *fourth = conn_find("a");
        printf("%d %d %d %d\n", first, second > 0, third == NULL, fourth == NULL);
    }
    return 0;
}
