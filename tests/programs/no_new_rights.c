/* what: PR_SET_NO_NEW_PRIVS, then children, threads and execution of itself and of others go on
 * build: -O1 -pthread
 * status: 6
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void *thread(void *nothing)
{
    printf("thread: %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    return nothing;
}

static void all(const char *who)
{
    int status;
    pthread_t other;
    printf("%s: %d\n", who, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    fflush(stdout);
    if (fork() == 0) {
        printf("child: %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
        exit(3);
    }
    wait(&status);
    printf("status %d, system %d\n", WEXITSTATUS(status), system("exit 5") >> 8);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        all("after execve");
        return 6;
    }
    printf("at first %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
    printf("bad argument %d\n", prctl(PR_SET_NO_NEW_PRIVS, 2, 0, 0, 0));
    printf("set %d\n", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    printf("not cleared %d\n", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    all("set");
    execl("/proc/self/exe", "no_new_rights", "again", (char *)NULL);
    return 1;
}
