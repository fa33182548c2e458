/* what: the kernel's word on which signals are blocked, ignored and caught, who traces, how many threads there are
 * build: -O1
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

static void handler(int number) { (void)number; }

static void show(const char *path)
{
    static const char *const wanted[] = {"Sig", "Shd", "Threads", "TracerPid", "Seccomp", "NoNewPrivs", "Name", "FDSize"};
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
    return 0;
}
