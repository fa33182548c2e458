/* what: the process' own files in /proc opened in every way: numbers, flags, errors, reading in pieces and again
 * build: -O1
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "note.h"

static void try(const char *what, int file)
{
    char byte[2] = "";
    struct stat about;
    note(what, file);
    if (file < 0) {
        note("errno", errno);
        return;
    }
    note("reads", read(file, byte, 1));
    note("starts with a digit or name", (byte[0] >= '0' && byte[0] <= '9') || byte[0] == 'N');
    note("writes", write(file, "x", 1));
    note("access", fcntl(file, F_GETFL) & O_ACCMODE);
    note("descriptor flags", fcntl(file, F_GETFD));
    note("regular", fstat(file, &about) == 0 && S_ISREG(about.st_mode));
    note("mode", about.st_mode & 0777);
    note("at", lseek(file, 0, SEEK_CUR));
    note("back", lseek(file, 0, SEEK_SET));
    close(file);
}

static void list(void)
{
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (entry->d_name[0] != '.')
            note("open", atoi(entry->d_name));
    closedir(folder);
}

int main(void)
{
    struct open_how how;
    struct rlimit limit;
    memset(&how, 0, sizeof how);
    try("open", open("/proc/self/maps", O_RDONLY));
    try("open raw", (int)syscall(SYS_open, "/proc/self/maps", O_RDONLY | O_CLOEXEC));
    try("openat2", (int)syscall(SYS_openat2, AT_FDCWD, "/proc/self/status", &how, sizeof how));
    int folder = open("/proc/self", O_PATH | O_DIRECTORY);
    try("relative", openat(folder, "maps", O_RDONLY | O_CLOEXEC));
    try("relative", openat(folder, "task/../status", O_RDONLY));
    if (chdir("/proc/self") != 0)
        return 1;
    try("in the folder", open("status", O_RDONLY));
    try("for writing", open("maps", O_WRONLY | O_TRUNC) < 0 ? -1 : 99);
    try("missing", open("/proc/self/task/1/maps/status", O_RDONLY));
    try("bad folder", openat(-7, "status", O_RDONLY));
    try("bad path", open((char *)8, O_RDONLY));
    char *pages = (char *)0x7fff00001000;
    try("another", open("/proc/1/status", O_RDONLY));
    try("a path", open("/proc/self/status", O_PATH));
    list();
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 5;
    setrlimit(RLIMIT_NOFILE, &limit);
    int file = open("status", O_RDONLY);
    note("the last", file);
    note("no more", open("status", O_RDONLY));
    note("errno", errno);
    close(file);
    note("no path", open(pages, O_RDONLY));
    note("errno", errno);
    limit.rlim_cur = 20;
    setrlimit(RLIMIT_NOFILE, &limit);
    list();
    return 0;
}
