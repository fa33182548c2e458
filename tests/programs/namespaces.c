/* what: unshare and setns: mounts, names, processes with a first process of their own; threads and children go on in them
 * build: -O1 -pthread
 * needs: root
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static void *thread(void *name)
{
    struct utsname system;
    uname(&system);
    printf("thread sees the name %d\n", strcmp(system.nodename, name) == 0);
    return NULL;
}

int main(void)
{
    struct utsname before, after;
    int status;
    uname(&before);
    int own = open("/proc/self/ns/uts", O_RDONLY);
    if (unshare(CLONE_NEWUTS) != 0) {
        printf("no new namespaces here: %s\n", strerrorname_np(errno));
        return 0;
    }
    printf("named %d\n", sethostname("another", 7));
    pthread_t other;
    pthread_create(&other, NULL, thread, "another");
    pthread_join(other, NULL);
    printf("back %d", setns(own, CLONE_NEWUTS));
    uname(&after);
    printf(" %d\n", strcmp(before.nodename, after.nodename));
    printf("mounts %d", unshare(CLONE_NEWNS | CLONE_FS));
    printf(" %d", mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL));
    printf(" %d", mount("none", "/tmp", "tmpfs", 0, "size=1m"));
    FILE *file = fopen("/tmp/only_here", "w");
    printf(" file %d\n", file != NULL && fclose(file) == 0);
    printf("processes %d\n", unshare(CLONE_NEWPID));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("pid %d, parent's %d\n", (int)getpid(), (int)getppid());
        fflush(stdout);
        pid_t second = fork();
        if (second == 0) {
            printf("second pid %d, parent's %d, file there %d\n", (int)getpid(), (int)getppid(), access("/tmp/only_here", F_OK) == 0);
            exit(2);
        }
        waitpid(second, &status, 0);
        printf("waited for %d: %d\n", (int)second, WEXITSTATUS(status));
        pthread_create(&other, NULL, thread, before.nodename);
        pthread_join(other, NULL);
        exit(3);
    }
    waitpid(child, &status, 0);
    printf("status %d\n", WEXITSTATUS(status));
    return 0;
}
