/* what: memory mapped by fixed addresses into gaps that the list of mappings has near the program, its libraries and its stack: by each call that can
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEGABYTE (1ul << 20)
#define STEP (2 * MEGABYTE)
#define STORE_BYTES (64 * MEGABYTE)

typedef long (*function)(long);

struct gap {
    uintptr_t start, end;
};

static struct gap gaps[512];
static int n_gaps;
static unsigned state = 12345;
static char *store;

static unsigned draw(unsigned below)
{
    state = state * 1103515245 + 12345;
    return (state >> 12) % below;
}

/* The gaps that are larger than `size`, by address. */
static void find_gaps(unsigned long size)
{
    char line[512];
    uintptr_t start, end, last = 0x10000;
    FILE *maps = fopen("/proc/self/maps", "re");
    n_gaps = 0;
    while (fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx", &start, &end) != 2)
            continue;
        /* Not where the stack grows. */
        if (start > last && start - last > size + 2 * STEP && n_gaps < 512 && start < (uintptr_t)&line - 256 * MEGABYTE)
            gaps[n_gaps++] = (struct gap){last + STEP, start - STEP};
        last = end;
    }
    fclose(maps);
}

/* A place for `size` bytes in a gap: at its start, at its end, or anywhere in the 300 MiB next to either. */
static char *choose(unsigned long size)
{
    find_gaps(size);
    struct gap gap = gaps[draw((unsigned)n_gaps)];
    unsigned long room = (gap.end - gap.start - size) / 4096, reach = room < 300 * 256 ? room : 300 * 256;
    unsigned long distance = draw(3) == 0 ? 0 : draw((unsigned)reach + 1) * 4096ul;
    return (char *)(draw(2) ? gap.start + distance : gap.end - size - distance) - ((gap.end - size) & 4095);
}

__attribute__((noinline)) static long work(long x) { return 3 * x + 1; }

/* Runs code at `place`, and some of the program's own around it. */
static int runs_at(char *place, long number)
{
    unsigned char code[] = {0x48, 0x8d, 0x87, 0, 0, 0, 0, 0xc3};     /* lea rax, [rdi + number]; ret */
    int value = (int)number;
    long sum = 0, expected = 0;
    memcpy(code + 3, &value, sizeof value);
    memcpy(place, code, sizeof code);
    if (mprotect(place, 4096, PROT_READ | PROT_EXEC) != 0)
        return 0;
    for (int i = 0; i < 50; i++) {
        sum += work(((function)(uintptr_t)place)(i));
        expected += 3 * (i + number) + 1;
    }
    return sum == expected && mprotect(place, 4096, PROT_READ | PROT_WRITE) == 0;
}

static int fill(char *place, unsigned long size)
{
    for (unsigned long i = 0; i < size; i += 16 * 4096)
        place[i + 7] = (char)(i >> 16);
    for (unsigned long i = 0; i < size; i += 16 * 4096)
        if (place[i + 7] != (char)(i >> 16))
            return 0;
    return 1;
}

/* One of the calls that map at an address of the program's choice. */
static char *map_by(int way, char *place, unsigned long size)
{
    const int rights = PROT_READ | PROT_WRITE, flags = MAP_ANONYMOUS | MAP_NORESERVE;
    switch (way) {
    case 0: return mmap(place, size, rights, MAP_PRIVATE | MAP_FIXED | flags, -1, 0);
    case 1: return mmap(place, size, rights, MAP_SHARED | MAP_FIXED | flags, -1, 0);
    case 2: return mmap(place, size, rights, MAP_PRIVATE | MAP_FIXED_NOREPLACE | flags, -1, 0);
    case 3: return mmap(place, size, rights, MAP_PRIVATE | flags, -1, 0);
    case 4: {
        char *old = mmap(store, size, rights, MAP_PRIVATE | MAP_FIXED | flags, -1, 0);
        char *moved = mremap(old, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place);
        mmap(store, STORE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_FIXED | flags, -1, 0);
        return moved;
    }
    case 5: {
        char *old = mmap(place, 4096, rights, MAP_PRIVATE | MAP_FIXED | flags, -1, 0);
        return mremap(old, 4096, size, 0);
    }
    default: {
        int segment = shmget(IPC_PRIVATE, size, 0600);
        char *mapped = shmat(segment, place, 0);
        shmctl(segment, IPC_RMID, NULL);
        return mapped;
    }
    }
}

static void try_all(const char *when, int rounds)
{
    enum { N_WAYS = 7 };
    static const char *const names[N_WAYS] = {"fixed", "shared", "free only", "hint", "moved", "grown", "segment"};
    int n_good[N_WAYS] = {0};
    for (int round = 0; round < rounds; round++) {
        int way = round % N_WAYS;
        unsigned long size = (1 + draw(40)) * MEGABYTE;
        char *place = choose(size), *mapped = map_by(way, place, size);
        if (mapped != place) {
            printf("%s: %s: %s\n", when, names[way], mapped == MAP_FAILED ? strerror(errno) : "elsewhere");
            continue;
        }
        n_good[way] += fill(place, size) && runs_at(place + 4096 * draw(8), round);
        if (way == N_WAYS - 1)
            shmdt(place);
        else if (draw(2))
            munmap(place, size);
    }
    for (int way = 0; way < N_WAYS; way++)
        printf("%s: %s: %d\n", when, names[way], n_good[way]);
}

static void tell(const char *call, int result)
{
    printf("%s %d %d\n", call, result, result == 0 ? 0 : errno);
}

/* What is around a small mapping is not mapped, for those calls that say so. */
static void name_all(void)
{
    const int rights = PROT_READ | PROT_WRITE;
    unsigned long size = 200 * MEGABYTE;
    unsigned char *there = malloc(size / 4096);
    char *place = choose(size);
    char *first = mmap(place, MEGABYTE, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    char *last = mmap(place + size - MEGABYTE, MEGABYTE, rights, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memset(first, 1, MEGABYTE);
    memset(last, 1, MEGABYTE);
    tell("mincore", mincore(place, size, there));
    tell("msync", msync(place, size, MS_ASYNC));
    tell("mlock", mlock(place, size));
    tell("munlock", munlock(place, size));
    tell("madvise", madvise(place, size, MADV_DONTNEED));
    printf("%d %d\n", first[7], last[7]);
    tell("mprotect", mprotect(place, size, PROT_READ));
    tell("munmap", munmap(place, size));
    tell("gone", mincore(last, 4096, there));
    free(there);
}

static volatile int is_over;

static void *spin(void *opaque)
{
    long sum = 0;
    while (!is_over)
        sum = work(sum) + (long)(intptr_t)opaque;
    return (void *)(intptr_t)(sum & 0);
}

static void *wait_for_byte(void *opaque)
{
    char byte = 0;
    ssize_t n = read((int)(intptr_t)opaque, &byte, 1);
    return (void *)(intptr_t)(n == 1 ? work(byte) : -1);
}

int main(void)
{
    pthread_t spinning[2], waiting[3];
    int pipes[2];
    setvbuf(stdout, NULL, _IOLBF, 1 << 12);
    store = mmap(NULL, STORE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    try_all("alone", 42);
    name_all();
    if (pipe(pipes) != 0)
        return 1;
    for (int i = 0; i < 2; i++)
        pthread_create(&spinning[i], NULL, spin, (void *)(intptr_t)i);
    for (int i = 0; i < 3; i++)
        pthread_create(&waiting[i], NULL, wait_for_byte, (void *)(intptr_t)pipes[0]);
    try_all("with threads", 21);
    is_over = 1;
    if (write(pipes[1], "\1\2\3", 3) != 3)
        return 1;
    long sum = 0;
    for (int i = 0; i < 2; i++)
        pthread_join(spinning[i], NULL);
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(waiting[i], &result);
        sum += (intptr_t)result;
    }
    printf("waited for: %ld\n", sum);
    return 0;
}
