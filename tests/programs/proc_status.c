/* what: the kernel's word on which signals are blocked, ignored and caught, who traces, how many threads there are
 * build: -O1
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void handler(int number) { (void)number; }

static const char *wanted[] = {"Sig", "Shd", "Threads", "TracerPid", "Seccomp", "NoNewPrivs", "Name"};

static void show(const char *path)
{
    char line[512];
    FILE *status = fopen(path, "r");
    if (status == NULL) {
        perror(path);
        return;
    }
    while (fgets(line, sizeof line, status) != NULL)
        for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++)
            if (strncmp(line, wanted[i], strlen(wanted[i])) == 0 && strncmp(line, "SigQ", 4) != 0)
                fputs(line, stdout);
    fclose(status);
}

int main(void)
{
    sigset_t set;
    show("/proc/self/status");
    signal(SIGSEGV, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGFPE, handler);
    signal(SIGUSR2, handler);
    signal(SIGRTMAX, handler);
    show("/proc/self/status");
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGTERM);
    show("/proc/thread-self/status");
    signal(SIGFPE, SIG_DFL);
    show("/proc/self/../self/./status");
    signal(SIGTERM, SIG_IGN);
    /* How large a table of descriptors is follows from who made the process, and what that had open: here it is known. */
    wanted[0] = "FDSize";
    fflush(stdout);
    if (fork() == 0)
        show("/proc/self/status");
    else
        wait(NULL);
    return 0;
}
