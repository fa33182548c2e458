/* what: a fast timer against system calls of every kind: interrupted, restarted, blocking, short; nothing is lost or repeated
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int ticks;
static void tick(int number)
{
    (void)number;
    int saved = errno;
    ticks++;
    errno = saved;
}

int main(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &every, NULL);
    int tube[2];
    if (pipe(tube) != 0)
        return 1;
    long sent = 0, got = 0, wrong = 0;
    for (int i = 0; i < 20000; i++) {
        unsigned char out = (unsigned char)i, in = 0;
        sent += write(tube[1], &out, 1);
        got += read(tube[0], &in, 1);
        wrong += in != out;
        wrong += getppid() <= 0;
        errno = 0;
        wrong += close(-1) != -1 || errno != EBADF;
        if (i % 500 == 0) {
            struct timespec pause = {0, 300000}, rest;
            while (nanosleep(&pause, &rest) != 0 && errno == EINTR)
                pause = rest;
        }
        if (i % 5000 == 0) {
            int status;
            pid_t child = fork();
            if (child == 0)
                _exit(5);
            wrong += waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5;
        }
    }
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    printf("sent %ld got %ld wrong %ld, some ticks %d\n", sent, got, wrong, ticks > 5);
    return 0;
}
