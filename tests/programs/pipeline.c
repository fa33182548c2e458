/* what: a pipeline like a shell's, of forks and programs; a reader that ends first, SIGPIPE, groups, killpg, sessions
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void stage(void);

static void numbers(void)
{
    for (int i = 0; i < 3000; i++)
        printf("%d\n", (i * 7919) % 3001);
}

static void sort(void)
{
    execlp("sort", "sort", "-n", (char *)NULL);
    exit(127);
}

static void odd_ones(void)
{
    int value;
    while (scanf("%d", &value) == 1)
        if (value % 2)
            printf("%d\n", value);
}

static void total(void)
{
    long sum = 0;
    int value, n = 0;
    while (scanf("%d", &value) == 1)
        sum = (sum * 31 + value) % 1000003, n++;
    printf("%d numbers, %ld\n", n, sum);
}

static void first_line(void)
{
    char line[100];
    if (fgets(line, sizeof line, stdin) != NULL)
        fputs(line, stdout);
}

static void without_end(void)
{
    for (;;)
        puts("y");
}

static void run(const char *what, stage **stages, int n)
{
    pid_t pids[8];
    int in = -1, tube[2], status;
    fflush(stdout);
    for (int i = 0; i < n; i++) {
        if (i < n - 1 && pipe2(tube, O_CLOEXEC) != 0)
            exit(1);
        pids[i] = fork();
        if (pids[i] == 0) {
            setpgid(0, i == 0 ? 0 : pids[0]);
            if (in >= 0)
                dup2(in, 0);
            if (i < n - 1)
                dup2(tube[1], 1);
            close(tube[0]);
            close(tube[1]);
            stages[i]();
            exit(i);
        }
        setpgid(pids[i], pids[0]);
        if (in >= 0)
            close(in);
        if (i < n - 1) {
            close(tube[1]);
            in = tube[0];
        }
    }
    printf("%s:", what);
    for (int i = 0; i < n; i++) {
        waitpid(pids[i], &status, 0);
        printf(" %d/%d", WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    putchar('\n');
}

int main(void)
{
    run("sum", (stage *[]){numbers, odd_ones, total}, 3);
    run("with a program", (stage *[]){numbers, sort, odd_ones, total}, 4);
    run("one line of many", (stage *[]){without_end, first_line}, 2);
    /* A group of waiting processes is ended by one signal. */
    pid_t group = 0;
    int status, ended = 0;
    fflush(stdout);
    for (int i = 0; i < 4; i++) {
        pid_t pid = fork();
        if (pid == 0)
            for (;;)
                pause();
        if (i == 0)
            group = pid;
        setpgid(pid, group);
    }
    printf("group %d", getpgid(group) == group);
    printf(" session %d", getsid(group) == getsid(0));
    printf(" killed %d", killpg(group, SIGTERM));
    while (waitpid(-group, &status, 0) > 0)
        ended += WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
    printf(" ended %d", ended);
    printf(" gone %d", killpg(group, 0));
    printf(" %s\n", strerrorname_np(errno));
    return 0;
}
