/* What the suites share: cases that check themselves, each in a process of its own, each one line of output.
 *
 * `name ok`, `name skipped: why`, or `name: what was wrong`. A case that does not end within its limit is ended by
 * SIGALRM; it is a process group, and what it leaves behind is killed.
 */
#pragma once
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CASE_SECONDS 20
#define PAGE 4096UL
/* No process has anything there: the first page, and the last one below the kernel's half. */
#define NOWHERE ((void *)8)
#define NOT_CANONICAL ((void *)0x800000000000)

struct one_case {
    const char *name;
    void (*run)(void);
};

#define CASE(name) {#name, name}

static char wrong[1000];
static char skipped[200];

static inline void tell_wrong(const char *format, ...)
{
    size_t length = strlen(wrong);
    va_list values;
    va_start(values, format);
    if (length + 3 < sizeof wrong) {
        memcpy(wrong + length, "; ", length ? 3 : 1);
        length += length ? 2 : 0;
        vsnprintf(wrong + length, sizeof wrong - length, format, values);
    }
    va_end(values);
}

static inline void expect_equal(const char *what, long got, long wanted)
{
    if (got != wanted)
        tell_wrong("%s is %ld, not %ld", what, got, wanted);
}

static inline void expect_error(const char *what, long result, int wanted)
{
    int error = errno;
    if (result != -1)
        tell_wrong("%s gave %ld instead of error %d", what, result, wanted);
    else if (error != wanted)
        tell_wrong("%s failed with %d, not %d", what, error, wanted);
}

#define EXPECT(value, wanted) expect_equal(#value, (long)(value), (long)(wanted))
#define EXPECT_TRUE(value) expect_equal(#value, !!(value), 1)
#define EXPECT_ERROR(call, error) expect_error(#call, (errno = 0, (long)(call)), error)

static inline void skip_case(const char *why)
{
    snprintf(skipped, sizeof skipped, "%s", why);
}

/* How a child ended: its exit status, or 1000 and the number of the signal that ended it. */
static inline long ended(pid_t child)
{
    int status;
    pid_t got;
    do
        got = waitpid(child, &status, 0);
    while (got < 0 && errno == EINTR);
    if (got != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

#define BY_SIGNAL(number) (1000 + (number))

static inline void *pages(size_t count, int protection)
{
    void *memory = mmap(NULL, count * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        tell_wrong("no %zu pages", count);
    return memory;
}

static inline volatile int *shared_ints(void)
{
    return mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Processes that wait for one another: one byte through a pipe. */
struct gate {
    int ends[2];
};

static inline struct gate make_gate(void)
{
    struct gate gate;
    if (pipe(gate.ends) != 0)
        tell_wrong("no pipe");
    return gate;
}

static inline void open_gate(struct gate gate)
{
    if (write(gate.ends[1], "x", 1) != 1)
        tell_wrong("the pipe takes nothing");
}

static inline void pass_gate(struct gate gate)
{
    char byte;
    while (read(gate.ends[0], &byte, 1) < 0 && errno == EINTR)
        ;
}

static inline void run_one(const struct one_case *one)
{
    char line[1400];
    setpgid(0, 0);
    alarm(CASE_SECONDS);
    one->run();
    alarm(0);
    int length;
    if (wrong[0])
        length = snprintf(line, sizeof line, "%s: %s\n", one->name, wrong);
    else if (skipped[0])
        length = snprintf(line, sizeof line, "%s skipped: %s\n", one->name, skipped);
    else
        length = snprintf(line, sizeof line, "%s ok\n", one->name);
    _exit(write(1, line, (size_t)length) != length);
}

/* Runs the cases, or of them those that are named on the command line. */
static inline int run_cases(const struct one_case *cases, size_t count, char **names)
{
    for (size_t i = 0; i < count; i++) {
        int is_wanted = names[0] == NULL;
        for (char **name = names; *name; name++)
            is_wanted |= strcmp(*name, cases[i].name) == 0;
        if (!is_wanted)
            continue;
        pid_t child = fork();
        if (child == 0)
            run_one(&cases[i]);
        long end = ended(child);
        kill(-child, SIGKILL);
        if (end != 0)
            dprintf(1, "%s: %s %ld\n", cases[i].name, end > 1000 ? "ended by signal" : "ended with", end % 1000);
    }
    return 0;
}

#define RUN_CASES(cases, names) run_cases(cases, sizeof(cases) / sizeof *(cases), names)
