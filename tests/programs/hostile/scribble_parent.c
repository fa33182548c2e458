/* Has children write random words over the memory that their parent shares with clew, while the parent works on.
 *
 * Arguments: a seed, and how many words a child writes. All processes of a family share one file, and each has its first
 * page mapped: a child can map its parent's part by it. Exits with 3 where that is not found, with 4 where it can't be.
 */
#define _GNU_SOURCE
#include "scribble.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, STEP = 1 << 21, CHILDREN = 4 };

/* One page with the mark of the file's start, and nothing behind it. */
static uint64_t find_first_page(int to, int from)
{
    for (unsigned i = 0; i < sizeof BASES / sizeof *BASES; i++)
        for (uint64_t at = BASES[i]; at < BASES[i] + (1 << 28); at += STEP) {
            uint64_t word;
            if (write(to, (void *)at, 8) == 8 && read(from, &word, 8) == 8 && word == MAGIC) {
                if (write(to, (void *)(at + PAGE), 8) != 8)
                    return at;
                if (read(from, &word, 8) != 8)
                    return 0;
            }
        }
    return 0;
}

static void scribble(uint64_t page, long n)
{
    const uint64_t likely[] = {0, 1, 2, 3, 4, 5, 63, 64, PAGE, ~0ull, 1ull << 31, 1ull << 32, (uint64_t)getppid()};
    char *base = mremap((void *)page, 0, 8 * STEP, MREMAP_MAYMOVE);
    if (base == MAP_FAILED)
        _exit(4);
    for (long i = 0; i < n; i++) {
        /* The status page, the first slots, the first ring. */
        const uint64_t starts[] = {PAGE, 2 * PAGE, 2 * PAGE + 256 * 1024 + 24 * PAGE};
        const uint64_t sizes[] = {512, 256 * 2, 1 << 16};
        unsigned part = next() % 3;
        uint64_t value = next() % 2 ? next() : likely[next() % (sizeof likely / sizeof *likely)];
        *(volatile uint32_t *)(base + starts[part] + next() % sizes[part] / 4 * 4) = (uint32_t)value;
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    int ends[2], status = 0, worst = 0;
    state = argc > 1 ? strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15 | 1 : 1;
    long n = argc > 2 ? atol(argv[2]) : 100;
    if (pipe(ends) != 0)
        return 2;
    uint64_t page = find_first_page(ends[1], ends[0]);
    if (page == 0)
        return 3;
    for (int i = 0; i < CHILDREN; i++, next())
        if (fork() == 0)
            scribble(page, n);
    while (wait(&status) > 0)
        if (WIFEXITED(status) && WEXITSTATUS(status) > worst)
            worst = WEXITSTATUS(status);
    return worst;
}
