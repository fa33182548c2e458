/* What is easily told wrong: descriptors that other kinds of calls change, a child that makes a child, a connection that is not waited for,
 * functions that fail.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
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
    else {
        int first = conn_open("/no/such"), second = conn_open("/dev/null");
        void *third = conn_find("b"), *fourth = conn_find("a");
        printf("%d %d %d %d\n", first, second > 0, third == NULL, fourth == NULL);
    }
    return 0;
}
