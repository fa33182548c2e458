/* what: brk and sbrk: grown, shrunk, grown again with zeros, refused; mappings in its way; code there; mremap of data, grown in place
 * build: -O1
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "note.h"

enum { PAGE = 4096 };

static void check(const char *what, char *at, size_t size, char value)
{
    long wrong = 0;
    for (size_t i = 0; i < size; i++)
        wrong += at[i] != value;
    note(what, wrong);
}

int main(void)
{
    char *start = sbrk(0);
    note("aligned", ((uintptr_t)start & 15) == 0);
    for (int round = 0; round < 3; round++) {
        char *old = sbrk(64 * PAGE);
        note("grown where it was", old == start);
        memset(old, 'x', 64 * PAGE);
        note("shrunk", sbrk(-32 * PAGE) == start + 64 * PAGE);
        note("grown again", sbrk(32 * PAGE) == start + 32 * PAGE);
        check("kept", start, 32 * PAGE - PAGE, 'x');
        check("zero", (char *)(((uintptr_t)start + 32 * PAGE + PAGE - 1) & ~(uintptr_t)(PAGE - 1)), 31 * PAGE, 0);
        char *end = sbrk(0), *next = (char *)(((uintptr_t)end + 2 * PAGE - 1) & ~(uintptr_t)(PAGE - 1));
        char *wall = mmap(next + 4 * PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        note("wall", wall == next + 4 * PAGE);
        errno = 0;
        note("refused", sbrk(64 * PAGE) == (void *)-1 && errno == ENOMEM);
        note("as before", sbrk(0) == end);
        munmap(wall, PAGE);
        note("below its start", syscall(SYS_brk, start - 64 * PAGE) == (long)end);
        note("nowhere", syscall(SYS_brk, -1l) == (long)end);
        note("granted", sbrk(64 * PAGE) == end);
        /* Code in the heap's pages. */
        char *page = (char *)(((uintptr_t)end + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
        mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
        memcpy(page, "\xb8\x00\x00\x00\x00\xc3", 6);
        page[1] = (char)(round + 40);
        note("code in it", ((int (*)(void))page)());
        note("back", brk(start));
        note("its end", sbrk(0) == start);
    }
    char *data = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(data, 'd', 64 * PAGE);
    munmap(data + 32 * PAGE, 32 * PAGE);
    char *grown = mremap(data, 32 * PAGE, 64 * PAGE, 0);
    note("grown in place", grown == data);
    check("kept", data, 32 * PAGE, 'd');
    check("zero", data + 32 * PAGE, 32 * PAGE, 0);
    char *moved = mremap(data, 64 * PAGE, 256 * PAGE, MREMAP_MAYMOVE);
    check("kept", moved, 32 * PAGE, 'd');
    char *shrunk = mremap(moved, 256 * PAGE, 8 * PAGE, 0);
    note("shrunk in place", shrunk == moved);
    struct rlimit limit;
    getrlimit(RLIMIT_DATA, &limit);
    setrlimit(RLIMIT_DATA, &(struct rlimit){1 << 20, limit.rlim_max});
    errno = 0;
    note("limited", sbrk(256 << 20) == (void *)-1 && errno == ENOMEM);
    setrlimit(RLIMIT_DATA, &limit);
    return 0;
}
