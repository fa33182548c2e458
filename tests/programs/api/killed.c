/* Is ended by a signal while it is in a system call: killed HOW PATH. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int ends[2];

static void pass(int number) { (void)number; }

static void *waits(void *nothing)
{
    char bytes[16];
    return read(ends[0], bytes, sizeof bytes) < 0 ? nothing : 0;
}

int main(int argc, char **argv)
{
    const char *how = argv[1];
    char bytes[16];
    struct pollfd polled = {.events = POLLIN};
    if (argc < 3 || pipe(ends))
        return 1;
    polled.fd = ends[0];
    if (!strcmp(how, "alarm")) {
        alarm(1);
        return read(ends[0], bytes, 7) < 0;
    }
    if (!strcmp(how, "restarted")) {
        /* Its handler has run once, and the call goes on. */
        struct sigaction action = {.sa_handler = pass, .sa_flags = SA_RESTART};
        sigset_t blocked;
        sigaction(SIGUSR1, &action, 0);
        if (!fork()) {
            usleep(200000);
            kill(getppid(), SIGUSR1);
            usleep(200000);
            kill(getppid(), SIGKILL);
            _exit(0);
        }
        sigemptyset(&blocked);
        return read(ends[0], bytes, 9) < 0;
    }
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "itself"))
        return kill(getpid(), SIGKILL);
    if (!strcmp(how, "pipe")) {
        close(ends[0]);
        return write(ends[1], "the last words", 14) < 0;
    }
    if (!strcmp(how, "path")) {
        /* Nobody will ever write to that. */
        alarm(1);
        return open(argv[2], O_RDONLY) < 0;
    }
    if (!strcmp(how, "thread")) {
        pthread_t thread;
        pthread_create(&thread, 0, waits, 0);
        usleep(200000);
        return kill(getpid(), SIGTERM);
    }
    if (!strcmp(how, "polling")) {
        puts("ready");
        fflush(stdout);
        return poll(&polled, 1, -1) < 0;
    }
    return 2;
}
