/*
 * Runs a command one instruction at a time, all its threads, and writes the addresses of what each executed.
 *
 *     stepper OUTPUT COMMAND [ARGUMENT]...
 *
 * Shares nothing with the tracer under test. Knows threads, unlike the stepper of the folder above, and not the code:
 * OUTPUT.steps has records of 16 bytes, thread u32, kind u32, address u64:
 *
 *     1  the thread executes the instruction there; one that repeats itself is told once
 *     2  a signal is delivered; if the last instruction told of is the one there, it waits, and did not run
 *
 * OUTPUT.maps is /proc/PID/maps when the first thread ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEP = 1, SIGNAL = 2, MOST = 64 };

static struct { pid_t tid; uint64_t last; } threads[MOST];
static FILE *steps;

static void fail(const char *what)
{
    fprintf(stderr, "stepper: %s: %s\n", what, strerror(errno));
    exit(125);
}

static void put(uint32_t tid, uint32_t kind, uint64_t pc)
{
    struct { uint32_t tid, kind; uint64_t pc; } record = {tid, kind, pc};
    if (fwrite(&record, sizeof record, 1, steps) != 1)
        fail("write");
}

static uint64_t *last_of(pid_t tid)
{
    for (int i = 0; i < MOST; i++) {
        if (threads[i].tid == 0)
            threads[i].tid = tid;
        if (threads[i].tid == tid)
            return &threads[i].last;
    }
    fail("too many threads");
    return NULL;
}

static void copy_maps(pid_t pid, const char *path)
{
    char name[64], buffer[4096];
    snprintf(name, sizeof name, "/proc/%d/maps", pid);
    FILE *from = fopen(name, "re"), *to = fopen(path, "we");
    if (from == NULL || to == NULL)
        fail("maps");
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, from)) > 0;)
        if (fwrite(buffer, 1, n, to) != n)
            fail("maps");
    fclose(from);
    fclose(to);
}

int main(int argc, char **argv)
{
    char name[4096];
    if (argc < 3)
        return 125;
    snprintf(name, sizeof name, "%s.steps", argv[1]);
    steps = fopen(name, "we");
    if (steps == NULL)
        fail(name);
    snprintf(name, sizeof name, "%s.maps", argv[1]);
    pid_t first = fork();
    if (first == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(125);
        execv(argv[2], argv + 2);
        _exit(127);
    }
    int status, result = 125;
    if (first < 0 || waitpid(first, &status, 0) != first || !WIFSTOPPED(status))
        fail("start");
    if (ptrace(PTRACE_SETOPTIONS, first, NULL, (void *)(PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL)))
        fail("options");
    pid_t tid = first;
    for (;;) {
        if (WIFSTOPPED(status)) {
            int number = WSTOPSIG(status), event = status >> 16, deliver = 0;
            int request = PTRACE_SINGLESTEP;
            uint64_t *last = last_of(tid);
            if (event == PTRACE_EVENT_EXIT) {
                request = PTRACE_CONT;
                if (tid == first)
                    copy_maps(first, name);
            } else if (event == 0) {
                uint64_t pc = (uint64_t)ptrace(PTRACE_PEEKUSER, tid, (void *)offsetof(struct user_regs_struct, rip), NULL);
                if (number == SIGTRAP || number == SIGSTOP) {
                    if (*last != pc)
                        put((uint32_t)tid, STEP, pc);
                    *last = pc;
                } else {
                    put((uint32_t)tid, SIGNAL, pc);
                    *last = 0;
                    deliver = number;
                }
            }
            if (ptrace(request, tid, NULL, (void *)(intptr_t)deliver) != 0 && errno != ESRCH)
                fail("step");
        } else if (tid == first) {
            result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        tid = waitpid(-1, &status, __WALL);
        if (tid < 0)
            break;
    }
    return fclose(steps) == 0 && errno == ECHILD ? result : 125;
}
