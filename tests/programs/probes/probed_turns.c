/* Does what it reads, a word and a number a line, and answers each line. `turn N` calls a function and prints its result;
   `fork N` makes a child that calls it N times with 1000 and more each time that `child` is read, or, if N is 0, calls it
   all the time, and ends with 3 when a result is wrong; `vfork PATH` waits in the kernel until somebody opens a pipe;
   `load PATH` loads a library, `exec PATH` becomes another program, `leave` goes on in a child when this process ends. */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) long turn(long n)
{
    __asm__ volatile("" ::: "memory");
    return n * 7 + 1;
}

__attribute__((noinline)) long other(long n)
{
    __asm__ volatile("" ::: "memory");
    return n - 1;
}

static int to_child[2], from_child[2];

static void check_turn(long n)
{
    if (turn(n) != n * 7 + 1) _exit(3);
}

static void serve_turns(long n)
{
    char byte;
    struct pollfd asked = {.fd = to_child[0], .events = POLLIN};
    for (;;) {
        while (n == 0 && !poll(&asked, 1, 0))
            for (long k = 0; k < 100; k++) check_turn(k);
        if (read(to_child[0], &byte, 1) != 1) break;
        for (long k = 0; k < n; k++) {
            check_turn(1000 + k);
            other(k);
        }
        if (write(from_child[1], "", 1) != 1) _exit(3);
    }
    _exit(0);
}

int main(void)
{
    char line[512], word[16], rest[480];
    setvbuf(stdin, 0, _IONBF, 0);
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        rest[0] = 0;
        if (sscanf(line, "%15s %479s", word, rest) < 1) continue;
        if (!strcmp(word, "turn")) {
            long result = turn(atol(rest)), less = other(atol(rest));
            printf("%ld %ld\n", result, less);
        } else if (!strcmp(word, "fork")) {
            if (pipe(to_child) || pipe(from_child)) return 3;
            pid_t child = fork();
            if (!child) {
                close(to_child[1]);
                serve_turns(atol(rest));
            }
            printf("%d\n", child);
        } else if (!strcmp(word, "child")) {
            char byte;
            if (write(to_child[1], "", 1) != 1 || read(from_child[0], &byte, 1) != 1) return 3;
            puts("done");
        } else if (!strcmp(word, "vfork")) {
            if (!vfork()) {
                /* So is its parent, meanwhile. */
                open(rest, O_RDONLY);
                _exit(0);
            }
            puts("done");
        } else if (!strcmp(word, "load")) {
            puts(dlopen(rest, RTLD_NOW) ? "loaded" : dlerror());
        } else if (!strcmp(word, "exec")) {
            execl(rest, rest, (char *)0);
            puts("failed");
        } else if (!strcmp(word, "leave")) {
            char byte;
            int ended[2];
            if (pipe(ended)) return 3;
            if (fork()) _exit(0);
            close(ended[1]);
            /* The end comes when the parent's descriptors are closed. */
            if (read(ended[0], &byte, 1)) return 3;
            printf("%d\n", getpid());
        }
        fflush(stdout);
    }
    return 0;
}
