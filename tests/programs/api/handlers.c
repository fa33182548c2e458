/* Returns from handlers, often and from the same place: of signals that it sends itself, and of the ends of children while
   it waits for them. What it does in between differs, so that calls do not come in a rhythm. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS 20

static volatile int n_handled;

static void handle(int signal) {
    (void)signal;
    n_handled++;
}

int main(void) {
    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGCHLD, &action, NULL);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int more = 0; more < turn % 4; more++) getuid();
        kill(getpid(), SIGUSR1);
        if (turn % 3) continue;
        if (fork() == 0) _exit(0);
        while (waitpid(-1, NULL, 0) < 0 && errno == EINTR) {}
    }
    return n_handled == TURNS + (TURNS + 2) / 3 ? 0 : 1;
}
