/* Maps all that is free within more than 2 GiB of its code, so that no jump from there leads to anything new, and calls
   functions for each line. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define REACH (UINT64_C(0x81000000))

__attribute__((noipa)) long added(long a, long b) { return a * 5 + b; }

/* The first instruction refers to what is beside it; the second branches. */
static volatile long kept = 3;
__attribute__((noipa)) long referring(long a) { return kept > a ? kept - a : a; }

static void fill(void)
{
    static uint64_t ends[4096][2];
    uint64_t code = (uint64_t)&added, low = code > REACH ? code - REACH : 0x10000, high = code + REACH;
    unsigned n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    while (fgets(line, sizeof line, maps) && n < 4096) sscanf(line, "%lx-%lx", &ends[n][0], &ends[n][1]), n++;
    fclose(maps);
    for (unsigned at = 0; at <= n; at++) {
        uint64_t start = at ? ends[at - 1][1] : 0x10000, end = at < n ? ends[at][0] : high;
        if (start < low) start = low & ~UINT64_C(0xfff);
        if (end > high) end = high & ~UINT64_C(0xfff);
        if (start < end)
            mmap((void *)start, end - start, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                 -1, 0);
    }
}

int main(void)
{
    char line[64];
    setvbuf(stdout, NULL, _IOLBF, 4096);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        if (line[0] == 'f') fill();
        long sum = 0;
        for (long n = 0; n < 10; n++) sum = sum * 3 + added(n, 7) + referring(n);
        printf("%ld\n", sum);
    }
    return 0;
}
