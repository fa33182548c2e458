/* Makes calls whose structures say what is not so: sizes beyond all memory, circles, ends of mappings. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define CALL(name, ...) syscall(SYS_##name, ##__VA_ARGS__)

int main(void) {
    /* A page with nothing behind it. */
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *end = page + 4096;
    size_t sizes[] = {1, 1023, 1024, 1025, 1UL << 31, 1UL << 32, 1UL << 61, SIZE_MAX};
    struct iovec circle = {&circle, SIZE_MAX}, last;
    struct cmsghdr heads[4];
    char *words[] = {(char *)words, end - 1, (char *)~0UL, NULL};
    int length = -1;
    munmap(end, 4096);
    memset(page, 0xFF, 4096);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct msghdr message = {.msg_name = page, .msg_namelen = (socklen_t)sizes[i], .msg_iov = &circle, .msg_iovlen = sizes[i],
                                 .msg_control = page, .msg_controllen = sizes[i], .msg_flags = -1};
        memset(heads, 0, sizeof heads);
        heads[0] = (struct cmsghdr){sizes[i], SOL_SOCKET, SCM_RIGHTS};
        CALL(writev, -1, &circle, sizes[i]);
        CALL(readv, -1, end - 8, sizes[i]);
        CALL(sendmsg, -1, &message, 0);
        message.msg_control = heads;
        CALL(sendmsg, -1, &message, 0);
        CALL(recvmsg, -1, &message, 0);
        CALL(sendmmsg, -1, page, sizes[i], 0);
        CALL(sendmsg, -1, end - 40, 0);
        CALL(poll, end - 4, sizes[i] | 1UL << 31, 0);
        CALL(bind, -1, end - 3, sizes[i]);
        CALL(setsockopt, -1, SOL_SOCKET, SO_LINGER, end - 1, sizes[i]);
        CALL(sched_setaffinity, -1, sizes[i], end - 1);
        CALL(rt_sigprocmask, 0, end - 4, NULL, sizes[i]);
        CALL(clone3, end - 64, sizes[i] | 1UL << 20);
        CALL(ioctl, -1, 0xFFFF0000 | (unsigned)sizes[i], end - 5);
    }
    last = (struct iovec){end - 2, 3};
    CALL(writev, -1, &last, 1);
    CALL(getsockopt, -1, SOL_SOCKET, SO_TYPE, page, &length);
    CALL(execve, end - 2, words, words);
    CALL(execve, "/no/such", end - 8, end - 1);
    CALL(select, -1, end - 1, page, NULL, end - 4);
    return 0;
}
