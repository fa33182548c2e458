/* what: execution of scripts: with an argument, interpreted by a script, by this program, by execveat of a descriptor, with fexecve
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/exec_script.XXXXXX";

static void make(const char *name, const char *text)
{
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text))
        exit(1);
    close(file);
}

static void run(const char *what, int kind, const char *path)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char *arguments[] = {"zero", "one", "two words", NULL};
        char *environment[] = {"PATH=/usr/bin:/bin", "VALUE=5", NULL};
        int file;
        switch (kind) {
        case 0: execve(path, arguments, environment); break;
        case 1: execvp(path, arguments); break;
        case 2:
            file = open(path, O_RDONLY);
            fexecve(file, arguments, environment);
            break;
        case 3:
            file = open(".", O_RDONLY | O_DIRECTORY);
            syscall(SYS_execveat, file, path, arguments, environment, 0);
            break;
        case 4:
            file = open(path, O_RDONLY | O_CLOEXEC);
            syscall(SYS_execveat, file, "", arguments, environment, AT_EMPTY_PATH);
            break;
        }
        printf("%s\n", strerrorname_np(errno));
        exit(77);
    }
    waitpid(child, &status, 0);
    printf("%s: %d\n", what, WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "interpret") == 0) {
        printf("interpreter: %d words, of script %s, last %s\n", argc, strrchr(argv[2], '/') ? strrchr(argv[2], '/') + 1 : argv[2], argv[argc - 1]);
        return 50;
    }
    if (argc > 1)
        return argc == 3 && strcmp(argv[1], "one") == 0 ? 60 : 61;
    char own[4096], text[4200];
    ssize_t size = readlink("/proc/self/exe", own, sizeof own - 1);
    own[size] = '\0';
    if (mkdtemp(folder) == NULL || chdir(folder) != 0)
        return 1;
    make("plain", "#!/bin/sh\necho \"script $# $1 $2 $VALUE\"\nexit 3\n");
    make("option", "#!/bin/sh -e\necho before\nfalse\necho after\n");
    make("second", "#!./plain\nnothing\n");
    make("bare", "echo \"without a first line $1\"\nexit 4\n");
    char line[4200];
    snprintf(line, sizeof line, "#!%s interpret\n", own);
    make("mine", line);
    make("chain", "#!./mine\n");
    run("plain", 0, "./plain");
    run("option", 0, "./option");
    run("interpreted by a script", 0, "./second");
    run("without a first line", 0, "./bare");
    run("without a first line, by execvp", 1, "./bare");
    run("interpreted by this program", 0, "./mine");
    run("chain", 0, "./chain");
    run("fexecve of this program's script", 2, "./mine");
    run("execveat", 3, "plain");
    run("execveat of a descriptor closed on exec", 4, "plain");
    run("execveat of a program", 4, own);
    snprintf(text, sizeof text, "rm -rf %s", folder);
    return system(text) == 0 ? 0 : 1;
}
