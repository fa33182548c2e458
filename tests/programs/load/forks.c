/* 1,000 children, ten at a time; number N runs N + 2 turns and exits with N modulo 200. Prints pid, turns and status of each. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "turns.h"

enum { CHILDREN = 1000, TOGETHER = 10 };

int main(void)
{
    static char text[100];
    for (int first = 0; first < CHILDREN; first += TOGETHER) {
        pid_t children[TOGETHER];
        for (int i = 0; i < TOGETHER; i++) {
            children[i] = fork();
            if (children[i] < 0)
                return 1;
            if (children[i] == 0) {
                run_turns(first + i + 2);
                _exit((first + i) % 200);
            }
        }
        for (int i = 0; i < TOGETHER; i++) {
            int status;
            if (waitpid(children[i], &status, 0) != children[i] || !WIFEXITED(status))
                return 2;
            int n = snprintf(text, sizeof text, "%d %d %d\n", children[i], first + i + 2, WEXITSTATUS(status));
            if (write(1, text, (size_t)n) != n)
                return 3;
        }
    }
    return 0;
}
