/* Sets probes of the kernel (uprobes) on the program's own code. */
#pragma once
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Where a place lies in the file: its mapping says so. */
static uint64_t offset_in_file(const void *place)
{
    char line[512];
    uint64_t offset = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end, from;
        if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &from) == 3 && start <= (uintptr_t)place && (uintptr_t)place < end)
            offset = (uintptr_t)place - start + from;
    }
    fclose(maps);
    return offset;
}

/* The number that the kernel has for such events; -1: it has none. */
static int kind_of_probes(void)
{
    int kind = -1;
    FILE *type = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
    if (type != NULL) {
        if (fscanf(type, "%d", &kind) != 1)
            kind = -1;
        fclose(type);
    }
    return kind;
}

/* Sets one for a thread, 0: this one, on an instruction or on the return of the function there; a descriptor that tells how often it
 * was hit. */
static inline int set_probe_of(const void *place, pid_t tid, int is_of_return)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = (unsigned)kind_of_probes();
    attr.uprobe_path = (uintptr_t)"/proc/self/exe";
    attr.probe_offset = offset_in_file(place);
    attr.config = (unsigned)is_of_return;
    return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, 0);
}

static inline int set_probe(const void *place, pid_t tid)
{
    return set_probe_of(place, tid, 0);
}

static long hits_of(int probe)
{
    uint64_t hits = 0;
    return read(probe, &hits, sizeof hits) == sizeof hits ? (long)hits : -1;
}
