/*
 * Runs a command one instruction at a time and writes what it executed: the oracle's only source of truth.
 *
 *     stepper OUTPUT COMMAND [ARGUMENT]...
 *
 * Shares nothing with the tracer under test: the kernel single-steps the first thread by PTRACE_SINGLESTEP. Children and
 * further threads are not followed. The command starts as it would by itself (execve, address randomisation as inherited).
 *
 * OUTPUT.code: entries of 24 bytes, an address and the 16 bytes there (zero where nothing can be read). A new entry is made
 * when an address comes up for the first time, and when its bytes have changed since. An entry's index is its *code number*.
 *
 * OUTPUT.steps: 64-bit words, value << 8 | kind:
 *
 *     STEP   1   code number       this instruction comes next
 *     SIGNAL 2   code number       a signal is about to be delivered; this instruction waits, or faulted; if a STEP for the
 *                                  same instruction stands just before, that step did not run
 *     WHICH  3   number << 32 | si_code, after each SIGNAL
 *     HANDLE 6   a handler for it starts with the next STEP; without this entry the signal is ignored, and what waited runs
 *     EXIT   4   status as waitpid gives it
 *     EXECVE 5   another program follows, which is not stepped
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stddef.h>

enum { STEP = 1, SIGNAL = 2, WHICH = 3, EXIT = 4, EXECVE = 5, HANDLE = 6 };
enum { CODE_BYTES = 16 };

struct seen {
    uint64_t pc;
    uint64_t code_number;
    int is_used;
    uint8_t bytes[CODE_BYTES];
};

static FILE *steps, *codes;
static uint64_t next_code_number;
static struct seen *table;
static size_t capacity, used;

static void fail(const char *what)
{
    fprintf(stderr, "stepper: %s: %s\n", what, strerror(errno));
    exit(125);
}

static void put(uint64_t kind, uint64_t value)
{
    uint64_t word = value << 8 | kind;
    if (fwrite(&word, sizeof word, 1, steps) != 1)
        fail("write");
}

static FILE *open_output(const char *path, const char *suffix)
{
    char name[4096];
    snprintf(name, sizeof name, "%s.%s", path, suffix);
    FILE *file = fopen(name, "wbe");
    if (file == NULL)
        fail(name);
    return file;
}

static struct seen *find(uint64_t pc)
{
    size_t at = (size_t)(pc * 0x9e3779b97f4a7c15u >> 20) & (capacity - 1);
    while (table[at].is_used && table[at].pc != pc)
        at = (at + 1) & (capacity - 1);
    return &table[at];
}

static void grow(void)
{
    struct seen *old = table;
    size_t old_capacity = capacity;
    capacity = capacity == 0 ? 1 << 14 : capacity * 2;
    table = calloc(capacity, sizeof *table);
    if (table == NULL)
        fail("memory");
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].is_used)
            *find(old[i].pc) = old[i];
    free(old);
}

/* Reads to the end of the page where what follows cannot be read. */
static void read_code(pid_t pid, uint64_t pc, uint8_t *bytes)
{
    memset(bytes, 0, CODE_BYTES);
    struct iovec local = {bytes, CODE_BYTES}, remote = {(void *)(uintptr_t)pc, CODE_BYTES};
    if (process_vm_readv(pid, &local, 1, &remote, 1, 0) > 0)
        return;
    size_t rest = 4096 - (pc & 4095);
    local.iov_len = remote.iov_len = rest < CODE_BYTES ? rest : CODE_BYTES;
    if (process_vm_readv(pid, &local, 1, &remote, 1, 0) > 0)
        return;
    for (size_t i = 0; i < CODE_BYTES; i += 8) {     /* execute-only and vsyscall memory */
        errno = 0;
        long word = ptrace(PTRACE_PEEKTEXT, pid, (void *)(uintptr_t)(pc + i), NULL);
        if (errno != 0)
            return;
        memcpy(bytes + i, &word, 8);
    }
}

/* Puts an entry about the instruction at pc, as it is now. */
static void put_code(uint64_t kind, pid_t pid, uint64_t pc)
{
    uint8_t bytes[CODE_BYTES];
    read_code(pid, pc, bytes);
    if (used * 2 > capacity)
        grow();
    struct seen *seen = find(pc);
    if (!seen->is_used || memcmp(seen->bytes, bytes, CODE_BYTES) != 0) {
        used += !seen->is_used;
        seen->is_used = 1;
        seen->pc = pc;
        seen->code_number = next_code_number++;
        memcpy(seen->bytes, bytes, CODE_BYTES);
        if (fwrite(&pc, sizeof pc, 1, codes) != 1 || fwrite(bytes, CODE_BYTES, 1, codes) != 1)
            fail("write");
    }
    put(kind, seen->code_number);
}

static uint64_t read_pc(pid_t pid)
{
    errno = 0;
    long pc = ptrace(PTRACE_PEEKUSER, pid, (void *)offsetof(struct user_regs_struct, rip), NULL);
    if (pc == -1 && errno != 0)
        fail("reading the program counter");
    return (uint64_t)pc;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: stepper OUTPUT COMMAND [ARGUMENT]...\n", stderr);
        return 125;
    }
    steps = open_output(argv[1], "steps");
    codes = open_output(argv[1], "code");
    grow();
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(125);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status;
    if (waitpid(pid, &status, 0) != pid)
        fail("waitpid");
    if (!WIFSTOPPED(status))
        return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
    if (ptrace(PTRACE_SETOPTIONS, pid, NULL, (void *)(PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)) != 0)
        fail("options");
    put_code(STEP, pid, read_pc(pid));
    int deliver = 0;
    for (;;) {
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, (void *)(intptr_t)deliver) != 0 && errno != ESRCH)
            fail("step");
        int delivered = deliver;
        deliver = 0;
        if (waitpid(pid, &status, 0) != pid)
            fail("waitpid");
        if (!WIFSTOPPED(status)) {
            put(EXIT, (uint64_t)(unsigned)status);
            break;
        }
        int number = WSTOPSIG(status);
        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
            put(EXECVE, 0);
            ptrace(PTRACE_DETACH, pid, NULL, NULL);
            waitpid(pid, &status, 0);
            break;
        }
        siginfo_t info;
        if (number == SIGTRAP) {
            if (delivered != 0 && ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) == 0 && info.si_code == SIGTRAP)
                put(HANDLE, 0);     /* a stop at the handler's start, not one after a step */
            put_code(STEP, pid, read_pc(pid));
            continue;
        }
        if (ptrace(PTRACE_GETSIGINFO, pid, NULL, &info) != 0)
            fail("siginfo");
        put_code(SIGNAL, pid, read_pc(pid));
        put(WHICH, (uint64_t)number << 32 | (uint32_t)info.si_code);
        deliver = number;
    }
    if (fclose(steps) != 0 || fclose(codes) != 0)
        fail("write");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
