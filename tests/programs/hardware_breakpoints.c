/* what: hardware breakpoints on code of its own: hits counted at calls, branches, returns; in threads, children, loops; with a signal for each
 * build: -O1 -pthread
 * needs: breakpoints
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include "note.h"

enum { TURNS = 60 };

/* A function of many places: its entry, a block's middle, a branch, what is behind a call, its return. */
long work(long value);
extern char in_middle[], branch[], behind_call[], last[], callee[], flags[];
__asm__(".globl work\n"
        "work: push %rbx\n"
        "mov %rdi, %rbx\n"
        "in_middle: add $3, %rbx\n"
        "test $1, %bl\n"
        "branch: jne 1f\n"
        "add $5, %rbx\n"
        "1: mov %rbx, %rdi\n"
        "call callee\n"
        "behind_call: add %rbx, %rax\n"
        "flags: pushf\n"
        "pop %rcx\n"
        "pop %rbx\n"
        "last: ret\n"
        "callee: lea 1(%rdi, %rdi), %rax\n"
        "ret\n");

static struct perf_event_attr attributes(const void *place, int kind)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_BREAKPOINT;
    attr.bp_type = kind;
    attr.bp_addr = (uintptr_t)place;
    attr.bp_len = kind == HW_BREAKPOINT_X ? sizeof(long) : HW_BREAKPOINT_LEN_4;
    attr.exclude_kernel = attr.exclude_hv = 1;
    return attr;
}

static int set_by(struct perf_event_attr attr, pid_t tid)
{
    return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, 0);
}

static int set(const void *place)
{
    return set_by(attributes(place, HW_BREAKPOINT_X), 0);
}

static long hits(int event)
{
    uint64_t count = 0;
    return read(event, &count, sizeof count) == sizeof count ? (long)count : -errno;
}

static long run(int turns)
{
    long (*volatile pointer)(long) = work;
    long sum = 0;
    for (int i = 0; i < turns; i++)
        sum += (i & 1 ? pointer : work)(i + sum % 7);
    return sum;
}

static void *thread_main(void *turns)
{
    return (void *)run((int)(intptr_t)turns);
}

static void count_places(void)
{
    const struct {
        const char *name;
        const void *place;
    } places[] = {{"entry", work},       {"middle", in_middle}, {"branch", branch}, {"behind a call", behind_call},
                  {"a return", last},    {"callee", callee},    {"flags", flags},   {"again", work}};
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        int event = set(places[i].place);
        note(places[i].name, run(TURNS));
        note("hits", hits(event));
        close(event);
        note("after", run(3));
    }
    int events[4] = {set(work), set(last), set(in_middle), set(callee)};
    note("a fifth", set(branch) < 0 ? errno : 0);
    note("four", run(TURNS));
    for (int i = 0; i < 4; i++) {
        note("hits", hits(events[i]));
        close(events[i]);
    }
}

static void control(void)
{
    struct perf_event_attr attr = attributes(callee, HW_BREAKPOINT_X);
    attr.disabled = 1;
    int event = set_by(attr, 0);
    run(5);
    note("disabled", hits(event));
    ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
    run(5);
    note("enabled", hits(event));
    ioctl(event, PERF_EVENT_IOC_RESET, 0);
    attr = attributes(behind_call, HW_BREAKPOINT_X);
    note("moved", ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
    run(7);
    note("hits", hits(event));
    attr.bp_len = 1;
    note("bad length", ioctl(event, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr) < 0 ? errno : 0);
    note("bad length", set_by(attr, 0) < 0 ? errno : 0);
    close(event);
    attr = attributes(work, HW_BREAKPOINT_X);
    attr.size = 1 << 20;
    note("too large", syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0) < 0 ? errno : 0);
    note("size", attr.size == sizeof attr || attr.size > 64);
    attr.size = 0;
    note("the first version", set_by(attr, 0) < 0 ? errno : 0);
    note("nowhere", syscall(SYS_perf_event_open, 8, 0, -1, -1, 0) < 0 ? errno : 0);
}

static void share(void)
{
    pthread_t thread;
    int status;
    struct perf_event_attr attr = attributes(work, HW_BREAKPOINT_X);
    int own = set_by(attr, 0);
    attr.inherit = 1;
    int all = set_by(attr, 0);
    pthread_create(&thread, NULL, thread_main, (void *)(intptr_t)20);
    run(10);
    pthread_join(thread, NULL);
    note("own", hits(own));
    note("with the thread's", hits(all));
    pid_t child = fork();
    if (child == 0)
        _exit(run(4) != 0 && hits(own) == 10 ? 3 : 4);
    waitpid(child, &status, 0);
    note("child", status);
    note("own", hits(own));
    note("with the child's", hits(all));
    close(own);
    close(all);
}

static volatile sig_atomic_t n_traps, n_odd;
static const void *expected;
static volatile int written;

static void on_trap(int signal, siginfo_t *info, void *opaque)
{
    const ucontext_t *context = opaque;
    n_traps++;
    /* TRAP_PERF; in front of an instruction, behind a write. */
    n_odd += signal != SIGTRAP || info->si_code != 6 || info->si_addr != expected;
    if (expected != &written)
        n_odd += context->uc_mcontext.gregs[REG_RIP] != (greg_t)expected;
}

static void trap(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, NULL);
    const void *const places[] = {work, branch, last, (const void *)&written};
    for (int i = 0; i < 4; i++) {
        expected = places[i];
        struct perf_event_attr attr = attributes(expected, i == 3 ? HW_BREAKPOINT_W : HW_BREAKPOINT_X);
        attr.sample_period = attr.sigtrap = attr.remove_on_exec = 1;
        n_traps = n_odd = 0;
        int event = set_by(attr, 0);
        note("with traps", run(TURNS));
        for (int turn = 0; turn < TURNS; turn++)
            written = turn;
        note("traps", n_traps);
        note("odd", n_odd);
        note("hits", hits(event));
        close(event);
    }
}

int main(void)
{
    note("before", run(TURNS));
    count_places();
    control();
    share();
    trap();
    return 0;
}
