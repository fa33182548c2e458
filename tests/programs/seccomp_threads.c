/* what: a filter for all threads at once (TSYNC), the listener that answers calls of another thread, and flags
 * build: -O2 -pthread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include "filter.h"
#include "note.h"

static int to_worker[2], from_worker[2];

static void *worker(void *unused)
{
    char byte;
    while (read(to_worker[0], &byte, 1) == 1 && byte != 'q') {
        long pid = raw(SYS_getppid, 0, 0, 0, 0);
        note("worker getppid", pid > 0 ? 1 : pid);
        note("worker getpgid", raw(SYS_getpgid, 77, 0, 0, 0));
        note("worker mremap", raw(SYS_mremap, 1, 2, 3, 99));
        if (write(from_worker[1], "x", 1) != 1)
            break;
    }
    return unused;
}

static void ask(char what)
{
    char byte;
    if (write(to_worker[1], &what, 1) != 1 || read(from_worker[0], &byte, 1) != 1)
        _exit(2);
}

static void *supervise(void *opaque)
{
    int listener = *(int *)opaque;
    for (int i = 0; i < 2; i++) {
        struct seccomp_notif asked;
        struct seccomp_notif_resp answer;
        memset(&asked, 0, sizeof asked);
        memset(&answer, 0, sizeof answer);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
            _exit(3);
        note("asked", asked.data.nr);
        note("argument", (long)asked.data.args[0]);
        answer.id = asked.id;
        answer.val = 4321;
        if (asked.data.nr == SYS_mremap)
            answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE, answer.val = 0;
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) != 0)
            _exit(4);
    }
    return NULL;
}

int main(void)
{
    static const int refused[] = {SYS_getppid}, asked[] = {SYS_getpgid, SYS_mremap};
    pthread_t thread, supervisor;
    if (pipe(to_worker) != 0 || pipe(from_worker) != 0)
        return 1;
    pthread_create(&thread, NULL, worker, NULL);
    note("strange flag", filter_calls(refused, 1, SECCOMP_RET_ALLOW, SECCOMP_RET_ALLOW, 1 << 20));
    note("errno", errno);
    note("logged", filter_calls(refused, 1, SECCOMP_RET_ERRNO | 9, SECCOMP_RET_ALLOW, SECCOMP_FILTER_FLAG_LOG));
    note("getppid", raw(SYS_getppid, 0, 0, 0, 0));
    ask('a');
    note("all", filter_calls(refused, 1, SECCOMP_RET_ERRNO | 99, SECCOMP_RET_ALLOW,
                             SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW));
    ask('b');
    int listener = (int)filter_calls(asked, 2, SECCOMP_RET_USER_NOTIF, SECCOMP_RET_ALLOW,
                                     SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC
                                         | SECCOMP_FILTER_FLAG_TSYNC_ESRCH);
    note("listener", listener);
    pthread_create(&supervisor, NULL, supervise, &listener);
    ask('c');
    pthread_join(supervisor, NULL);
    if (write(to_worker[1], "q", 1) != 1)
        return 1;
    _exit(0);
}
