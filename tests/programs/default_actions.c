/* what: what every signal does by default, and when ignored, blocked, or sent to a group: ends, dumps core, stops, nothing
 * build: -O1
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void show(const char *what, int number, int status)
{
    printf("%s %2d: ", what, number);
    if (WIFEXITED(status))
        printf("exited %d\n", WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        printf("signal %d%s\n", WTERMSIG(status), WCOREDUMP(status) ? ", core" : "");
    else if (WIFSTOPPED(status))
        printf("stopped by %d\n", WSTOPSIG(status));
}

static void run(const char *what, int number, void (*set)(int))
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        if (set)
            set(number);
        raise(number);
        _exit(3);
    }
    waitpid(child, &status, WUNTRACED);
    show(what, number, status);
    if (WIFSTOPPED(status)) {
        kill(child, SIGCONT);
        waitpid(child, &status, 0);
        show("  then", number, status);
    }
}

static void ignore(int number) { signal(number, SIG_IGN); }

static void block(int number)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    char folder[] = "/tmp/default_actions.XXXXXX";
    if (mkdtemp(folder) == NULL || chdir(folder) != 0)
        return 1;
    for (int number = 1; number < 32; number++) {
        run("default", number, NULL);
        run("ignored", number, ignore);
        run("blocked", number, block);
    }
    run("default", SIGRTMIN, NULL);
    run("default", SIGRTMAX, NULL);
    /* With a limit above zero, the signals that dump core say so. */
    struct rlimit limit;
    getrlimit(RLIMIT_CORE, &limit);
    if (limit.rlim_max < 4096 && geteuid() == 0)
        limit.rlim_max = 4096;
    if (limit.rlim_max >= 4096) {
        limit.rlim_cur = 4096;
        setrlimit(RLIMIT_CORE, &limit);
        static const int dumping[] = {SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS, SIGTERM};
        for (unsigned i = 0; i < sizeof dumping / sizeof *dumping; i++)
            run("with core files", dumping[i], NULL);
    }
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") == 0 && system(command) == 0 ? 0 : 1;
}
