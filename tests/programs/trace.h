/* Tracers and those that they trace. */
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <elf.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include "note.h"

#define EVENT_STOP(signal_number) ((signal_number) | PTRACE_EVENT_STOP << 8)
#define EVENT(kind) (SIGTRAP | (kind) << 8)
#define SYSCALL_STOP (SIGTRAP | 0x80)

/* How a tracee stopped: its signal, and above that its event; -1 - how it ended. */
static inline int wait_stop(pid_t tracee)
{
    int status;
    while (waitpid(tracee, &status, __WALL) < 0)
        if (errno != EINTR)
            return -errno * 1000;
    return WIFSTOPPED(status) ? status >> 8 : -1 - (WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status));
}

static inline struct user_regs_struct registers_of(pid_t tracee)
{
    struct user_regs_struct registers = {0};
    ptrace(PTRACE_GETREGS, tracee, NULL, &registers);
    return registers;
}

/* Whether an address lies in a named file of a process, or in what the kernel gives it to run. */
static inline int is_in_code(pid_t process, uint64_t address)
{
    char line[400], path[40];
    snprintf(path, sizeof path, "/proc/%d/maps", process);
    FILE *maps = fopen(path, "r");
    int is_there = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        char rights[8], name[300] = "";
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %299s", &start, &end, rights, name) < 3)
            continue;
        if (start <= address && address < end)
            is_there = rights[2] == 'x' && (name[0] == '/' || strcmp(name, "[vdso]") == 0);
    }
    if (maps)
        fclose(maps);
    return is_there;
}

struct gate {
    int ends[2];
};

static inline struct gate make_gate(void)
{
    struct gate gate;
    if (pipe(gate.ends) != 0)
        exit(9);
    return gate;
}

static inline void open_gate(struct gate gate)
{
    if (write(gate.ends[1], "x", 1) != 1)
        exit(9);
}

static inline void pass_gate(struct gate gate)
{
    char byte;
    while (read(gate.ends[0], &byte, 1) != 1)
        if (errno != EINTR)
            exit(9);
}
