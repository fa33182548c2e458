/* what: execve failing with each errno: the program, its handlers, threads and memory go on
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile int handled;
static char *arguments[] = {"name", NULL}, *nothing[] = {NULL};

static void handler(int number) { handled = number; }

static void try(const char *what, const char *path, char **with, char **environment)
{
    errno = 0;
    int result = execve(path, with, environment), error = errno;
    handled = 0;
    raise(SIGUSR1);
    printf("%s: %d %s, handled %d\n", what, result, strerrorname_np(error), handled);
}

static void make(const char *name, const char *text, mode_t mode)
{
    int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text))
        exit(1);
    close(file);
    chmod(name, mode);
}

static void *thread(void *from)
{
    try("in a thread", "missing", arguments, nothing);
    return from;
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    char folder[] = "/tmp/exec_errors.XXXXXX";
    if (mkdtemp(folder) == NULL || chdir(folder) != 0)
        return 1;
    signal(SIGUSR1, handler);
    make("plain", "x\n", 0644);
    make("empty", "", 0755);
    make("garbage", "\x01\x02\x03 no program", 0755);
    make("cut", "\x7f" "ELF\x02\x01\x01", 0755);
    make("script", "#!/no/such/interpreter\n", 0755);
    make("long", "#!", 0755);
    make("loop", "#!./loop\n", 0755);
    if (symlink("circle", "circle") != 0 || mkdir("folder", 0755) != 0)
        return 1;
    char name[5000];
    memset(name, 'n', sizeof name);
    name[300] = '\0';
    for (int round = 0; round < 2; round++) {
        try("not there", "missing", arguments, nothing);
        try("no name", "", arguments, nothing);
        try("not executable", "plain", arguments, nothing);
        try("a folder", "folder", arguments, nothing);
        try("through a file", "plain/missing", arguments, nothing);
        try("circle of links", "circle", arguments, nothing);
        try("long name", name, arguments, nothing);
        try("empty file", "empty", arguments, nothing);
        try("garbage", "garbage", arguments, nothing);
        try("cut ELF file", "cut", arguments, nothing);
        try("no interpreter", "script", arguments, nothing);
        try("empty interpreter", "long", arguments, nothing);
        try("interpreted by itself", "loop", arguments, nothing);
        try("bad path", (const char *)8, arguments, nothing);
        try("bad arguments", "/bin/true", (char **)8, nothing);
        try("bad environment", "/bin/true", arguments, (char **)8);
        char *bad[] = {"x", (char *)8, NULL};
        try("bad argument", "/bin/true", bad, nothing);
    }
    size_t size = 200000;
    char *word = malloc(size);
    memset(word, 'w', size - 1);
    word[size - 1] = '\0';
    char *large[] = {"x", word, NULL};
    try("long argument", "/bin/true", large, nothing);
    int file = open("busy", O_WRONLY | O_CREAT, 0755);
    try("written by somebody", "busy", arguments, nothing);
    close(file);
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? 0 : 1;
}
