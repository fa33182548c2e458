/* what: what a program sees of itself: arguments, environment, descriptors, masks, dispositions, limits, name, tracer, parent's limits
 * build: -O1
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        printf("argument %s\n", argv[i]);
    int variables = 0;
    for (char **at = environ; *at != NULL; at++)
        variables++;
    printf("variables %d, PATH %s\n", variables, getenv("PATH"));
    for (int i = 0; i < 64; i++)
        if (fcntl(i, F_GETFD) >= 0)
            printf("descriptor %d\n", i);
    printf("next descriptor %d\n", dup(1));
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int number = 1; number < 65; number++) {
        struct sigaction action;
        if (sigismember(&mask, number))
            printf("blocked %d\n", number);
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            printf("not default %d\n", number);
    }
    stack_t stack;
    sigaltstack(NULL, &stack);
    printf("signal stack flags %d\n", stack.ss_flags);
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit limit;
        getrlimit((__rlimit_resource_t)i, &limit);
        printf("limit %d %lu %lu\n", i, limit.rlim_cur, limit.rlim_max);
    }
    char name[32] = "";
    prctl(PR_GET_NAME, name);
    printf("name %s, dumpable %d, no new privileges %d, subreaper %d\n", name, prctl(PR_GET_DUMPABLE),
           prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
    char line[4096];
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "TracerPid", 9) == 0 || strncmp(line, "Threads", 7) == 0 || strncmp(line, "Seccomp:", 8) == 0 ||
            strncmp(line, "Name", 4) == 0 || strncmp(line, "SigIgn", 6) == 0 || strncmp(line, "SigBlk", 6) == 0)
            fputs(line, stdout);
    fclose(status);
    ssize_t got = readlink("/proc/self/exe", line, sizeof line - 1);
    line[got < 0 ? 0 : got] = '\0';
    printf("executable %s\n", strrchr(line, '/'));
    FILE *command = fopen("/proc/self/cmdline", "r");
    size_t size = fread(line, 1, sizeof line, command);
    printf("command line of %zu bytes ends in %s\n", size - strlen(argv[0]), strrchr(argv[0], '/'));
    printf("page size %lu, clock %lu, secure %lu, phdr %d, entry %d\n", getauxval(AT_PAGESZ), getauxval(AT_CLKTCK),
           getauxval(AT_SECURE), getauxval(AT_PHDR) != 0, getauxval(AT_ENTRY) != 0);
    printf("errno at start %d, umask %o, nice %d\n", errno * 0, umask(022), getpriority(PRIO_PROCESS, 0));
    return 0;
}
