/* what: a descriptor of the process' own files in /proc: what it is, its position, read in every way, shared, handed on, asked about one mapping
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include "note.h"

/* linux/fs.h has it since Linux 6.11. */
struct query {
    uint64_t size, flags, address, start, end, rights, page_size, offset, inode;
    uint32_t device[2], name_size, build_id_size;
    uint64_t name, build_id;
};
#define ASK _IOWR('f', 17, struct query)
#define WRITABLE 2
#define OR_NEXT 0x10
#define OF_FILE 0x20

static char whole[1 << 18], pieces[1 << 18], path[64];

static const char *last_name(const char *name)
{
    const char *last = strrchr(name, '/');
    return last != NULL ? last : name;
}

static size_t read_whole(int file, char *text, size_t step)
{
    size_t length = 0;
    for (ssize_t n; length + step < sizeof whole && (n = read(file, text + length, step)) > 0;)
        length += (size_t)n;
    text[length] = '\0';
    return length;
}

static void show_masks(void)
{
    char *masks = strstr(whole, "SigBlk");
    *strstr(masks, "CapInh") = '\0';
    puts(masks);
}

/* How much of a mapping is used differs at any time, and how often the process was switched from. */
static int is_same(const char *name, const char *one, const char *other, size_t length)
{
    if (strcmp(name, "/proc/self/maps") != 0 && length > 200)
        length = 200;
    return strstr(name, "smaps") != NULL || strstr(name, "numa") != NULL || memcmp(one, other, length) == 0;
}

static void look_at(const char *name, size_t step)
{
    struct statfs system;
    struct stat about;
    char link[256] = "";
    int pipes[2], file = open(name, O_RDONLY);
    puts(name);
    fstatfs(file, &system);
    fstat(file, &about);
    note("type", system.f_type);
    note("mode", about.st_mode);
    note("size", about.st_size);
    note("links", (long)about.st_nlink);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    note("link", readlink(path, link, sizeof link - 1) > 0 && strcmp(last_name(link), last_name(name)) == 0);
    note("mapped", mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0) == MAP_FAILED ? errno : 0);
    note("seals", fcntl(file, F_GET_SEALS));
    struct pollfd ready = {.fd = file, .events = POLLIN};
    note("ready", poll(&ready, 1, 0) * 100 + ready.revents);
    if (pipe(pipes) != 0)
        return;
    note("sent", sendfile(pipes[1], file, NULL, 10) < 0 ? errno : 0);
    note("spliced", splice(file, NULL, pipes[1], NULL, 10, 0) < 0 ? errno : 0);
    close(pipes[0]);
    close(pipes[1]);
    note("end", lseek(file, 0, SEEK_END) < 0 ? errno : 0);
    size_t length = read_whole(file, whole, 100);
    note("at the end", lseek(file, 0, SEEK_CUR) == (off_t)length && read(file, pieces, 10) == 0);
    note("back", lseek(file, 0, SEEK_SET));
    size_t again = read_whole(file, pieces, step);
    note("as long", strstr(name, "maps") == NULL || strstr(name, "numa") != NULL || again == length);
    note("the same", is_same(name, pieces, whole, length));
    note("in the middle", pread(file, pieces, 50, 120) == 50 && is_same(name, pieces, whole + 120, 50));
    note("stayed", lseek(file, 0, SEEK_CUR) == (off_t)again);
    note("before the start", pread(file, pieces, 50, -1) < 0 ? errno : 0);
    lseek(file, 7, SEEK_SET);
    struct iovec vector[] = {{pieces, 20}, {pieces + 20, 0}, {pieces + 20, 33}};
    note("in pieces", readv(file, vector, 3) == 53 && is_same(name, pieces, whole + 7, 53));
    note("in pieces, there", preadv(file, vector, 3, 9) == 53 && is_same(name, pieces, whole + 9, 53));
    note("flags", preadv2(file, vector, 3, 9, RWF_NOWAIT) < 0 ? errno : 0);
    note("as before", preadv2(file, vector, 3, -1, 0) == 53 && is_same(name, pieces, whole + 60, 53));
    note("bad vector", syscall(SYS_readv, file, 8, 3) < 0 ? errno : 0);
    note("too many", syscall(SYS_readv, file, vector, 1025) < 0 ? errno : 0);
    note("bad address", syscall(SYS_read, file, 8, 10) < 0 ? errno : 0);
    note("position", lseek(file, 0, SEEK_CUR));
    close(file);
}

/* How much a read gives that asks for more than there is: the kernel gives whole lines of a page. */
static void look_at_pages(void)
{
    char *lines[80];
    for (int i = 0; i < 80; i++)
        lines[i] = mmap(NULL, 4096 * 2, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int file = open("/proc/self/maps", O_RDONLY);
    ssize_t n = read(file, pieces, sizeof pieces);
    note("whole lines", n > 0 && pieces[n - 1] == '\n');
    note("of a page", n > 3800 && n < 4096);
    size_t length = (size_t)n + read_whole(file, pieces + n, sizeof pieces / 2);
    note("more", length > 4096);
    /* Each read is what there is when it begins anew. */
    munmap(lines[7], 4096 * 2);
    lseek(file, 0, SEEK_SET);
    note("shorter", read_whole(file, whole, 5000) < length);
    char *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    snprintf(path, sizeof path, "%lx-%lx r-xp", (unsigned long)code, (unsigned long)code + 4096);
    note("not there", strstr(whole, path) == NULL);
    lseek(file, 0, SEEK_SET);
    read_whole(file, whole, 5000);
    note("there", strstr(whole, path) != NULL);
    close(file);
}

static void share(void)
{
    char byte[12] = "";
    int status, file = open("/proc/self/status", O_RDONLY), copy = dup(file), far = fcntl(file, F_DUPFD_CLOEXEC, 700);
    note("far", far);
    note("first", read(file, byte, 5) == 5 && memcmp(byte, "Name:", 5) == 0);
    pid_t child = fork();
    if (child == 0) {
        /* It is of the parent. */
        _exit(lseek(copy, 6, SEEK_SET) == 6 && read(file, byte, 10) == 10 && memcmp(byte, "proc_files", 10) == 0);
    }
    waitpid(child, &status, 0);
    note("child", WEXITSTATUS(status));
    note("moved", lseek(far, 0, SEEK_CUR));
    signal(SIGUSR1, SIG_IGN);
    dup2(copy, 900);
    close(copy);
    close(file);
    lseek(900, 0, SEEK_SET);
    read_whole(900, whole, 4096);
    show_masks();
    read_whole(far, pieces, 1);
    close(far);
    note("closed", syscall(SYS_close_range, 900, 900, 0));
    note("gone", read(900, byte, 1));
    file = open("/proc/self/stat", O_RDONLY);
    read_whole(file, whole, 4096);
    /* What waits, is blocked, ignored and caught. */
    char *at = strrchr(whole, ')');
    for (int field = 2; field < 31; field++)
        at = strchr(at + 1, ' ');
    long masks[4];
    sscanf(at, "%ld %ld %ld %ld", &masks[0], &masks[1], &masks[2], &masks[3]);
    for (int i = 0; i < 4; i++)
        note("mask", masks[i]);
    close(file);
}

/* A program that is executed reads what was opened before, as a shell redirects. */
static void hand_on(char *self)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        /* Its maps are of the memory that is gone then. */
        dup2(open("/proc/self/maps", O_RDONLY), 3);
        dup2(open("/proc/self/status", O_RDONLY), STDIN_FILENO);
        execl(self, self, "inherited", (char *)NULL);
        _exit(9);
    }
    waitpid(child, &status, 0);
    note("handed on", status);
}

static int inherited(void)
{
    note("maps", (long)read_whole(3, whole, 4096));
    read_whole(STDIN_FILENO, whole, 4096);
    show_masks();
    return 0;
}

static void ask(int file, const char *what, uint64_t flags, uintptr_t address)
{
    char name[256] = "";
    struct query query = {.size = sizeof query, .flags = flags, .address = address};
    query.name = (uintptr_t)name;
    query.name_size = sizeof name;
    puts(what);
    if (ioctl(file, ASK, &query) != 0) {
        note("errno", errno);
        return;
    }
    note("around", query.start <= address && address < query.end);
    note("behind", query.start > address);
    note("size", query.end - query.start > 1ul << 30 ? -1 : (long)(query.end - query.start));
    note("rights", (long)query.rights);
    note("page", (long)query.page_size);
    note("offset", (long)query.offset);
    note("file", query.inode != 0);
    puts(query.name_size != 0 ? last_name(name) : "no name");
}

static void ask_all(void)
{
    int file = open("/proc/self/maps", O_RDONLY), n = 0, n_lines = 0;
    char *pages = mmap(NULL, 5 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 3 * 4096, PROT_READ | PROT_WRITE);
    munmap(pages + 2 * 4096, 4096);
    ask(file, "code", 0, (uintptr_t)ask_all);
    ask(file, "data", OR_NEXT | WRITABLE, (uintptr_t)pages);
    ask(file, "a gap", 0, (uintptr_t)pages + 2 * 4096);
    ask(file, "behind a gap", OR_NEXT, (uintptr_t)pages + 2 * 4096);
    ask(file, "of a file", OF_FILE, (uintptr_t)pages);
    ask(file, "nothing behind", OR_NEXT, (uintptr_t)-4096 * 16);
    ask(file, "bad flags", 0x400, (uintptr_t)pages);
    struct query query = {.size = 8, .address = (uintptr_t)ask_all};
    note("too small", ioctl(file, ASK, &query) == 0 ? 0 : errno);
    note("nowhere", ioctl(file, ASK, 8) == 0 ? 0 : errno);
    note("another question", ioctl(file, _IO('f', 99)) == 0 ? 0 : errno);
    for (query = (struct query){.size = 40, .flags = OR_NEXT}; ioctl(file, ASK, &query) == 0; query.address = query.end) {
        /* What is only reserved a tool may have that runs beside the program. */
        query.size = sizeof query;
        if (ioctl(file, ASK, &query) == 0 && (query.rights != 0 || query.end - query.start < 1ul << 32))
            n++;
    }
    lseek(file, 0, SEEK_SET);
    read_whole(file, whole, 4096);
    for (char *line = strtok(whole, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        unsigned long start, end;
        char rights[5];
        sscanf(line, "%lx-%lx %4s", &start, &end, rights);
        if (end - start < 1ul << 32 || strcmp(rights, "---p") != 0)
            /* The vsyscall page is no mapping. */
            n_lines += strstr(line, "[vsyscall]") == NULL;
    }
    note("as many", n == n_lines);
    close(file);
}

int main(int n_arguments, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 1 << 12);
    if (n_arguments == 2)
        return inherited();
    look_at("/proc/self/maps", 4096);
    look_at("/proc/self/smaps", 1 << 16);
    look_at("/proc/self/numa_maps", 999);
    look_at("/proc/self/status", 4096);
    look_at("/proc/thread-self/status", 1);
    look_at_pages();
    share();
    hand_on(arguments[0]);
    ask_all();
    return 0;
}
