/* A file in the hands of several processes: opened, duplicated, passed over a socket, inherited by a child and by the
   program that it executes, taken by a stream, renamed, closed. Each use is a call of its own; another file has its
   number once it is closed. All happens in the folder where the program is. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int ends[2];

static void pass(int number) {
    char control[CMSG_SPACE(sizeof number)] = {0}, byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){CMSG_LEN(sizeof number), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(head), &number, sizeof number);
    assert(sendmsg(ends[0], &message, 0) == 1);
}

static int take(void) {
    int number;
    char control[CMSG_SPACE(sizeof number)] = {0}, byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    assert(recvmsg(ends[1], &message, 0) == 1);
    memcpy(&number, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof number);
    return number;
}

static void be_child(const char *program, int inherited, int closing) {
    char room[3], first[12], second[12];
    int number = take();
    assert(pread(number, room, 3, 0) == 3);
    assert(close(number) == 0);
    snprintf(first, sizeof first, "%d", inherited);
    snprintf(second, sizeof second, "%d", closing);
    execl(program, program, first, second, NULL);
}

static void be_executed(int inherited, int closing) {
    assert(write(inherited, "five", 4) == 4);
    assert(write(closing, "none", 4) == -1 && errno == EBADF);
    assert(close(inherited) == 0);
}

static void *read_beside(void *number) {
    char room[2];
    assert(pread(*(int *)number, room, 2, 1) == 2);
    return NULL;
}

int main(int n_words, char **words) {
    char room[4];
    pthread_t thread;
    if (n_words == 3) {
        be_executed(atoi(words[1]), atoi(words[2]));
        return 0;
    }
    int number = open("shared", O_RDWR | O_CREAT | O_TRUNC, 0600);
    int copy = dup(number), closing = fcntl(number, F_DUPFD_CLOEXEC, 0);
    assert(write(number, "one", 3) == 3 && write(copy, "four", 4) == 4);
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pid_t child = fork();
    if (child == 0) be_child(words[0], copy, closing);
    pass(number);
    assert(close(number) == 0);
    assert(waitpid(child, NULL, 0) == child);
    pthread_create(&thread, NULL, read_beside, &copy);
    pthread_join(thread, NULL);
    assert(open("other", O_RDWR | O_CREAT | O_TRUNC, 0600) == number);
    assert(write(number, "else", 4) == 4);
    assert(rename("shared", "renamed") == 0);
    FILE *stream = fdopen(copy, "r+");
    rewind(stream);
    assert(fread(room, 1, 3, stream) == 3 && memcmp(room, "one", 3) == 0);
    fclose(stream);
    number = open("renamed", O_RDONLY);
    assert(read(number, room, 1) == 1);
    stream = tmpfile();
    assert(fwrite("deep", 1, 4, stream) == 4 && fflush(stream) == 0);
    assert(pread(fileno(stream), room, 4, 0) == 4);
    fclose(stream);
    return 0;
}
