/* what: syscall user dispatch: calls from outside a range come as SIGSYS, or not, as a byte says
 * build: -O1 -fno-stack-protector -pthread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include "filter.h"
#include "note.h"

static volatile char selector;
static volatile int trapped, last_call, last_code, is_right;
static volatile int ticks;

static volatile int is_let_through;

/* The handler's own return must be allowed: the call that it interrupted is, too, then, also if a second one comes before it. */
static void tick(int number)
{
    ticks += number == SIGALRM;
    is_let_through |= selector;
    selector = 0;
}

static void handler(int number, siginfo_t *info, void *opaque)
{
    greg_t *r = ((ucontext_t *)opaque)->uc_mcontext.gregs;
    selector = 0;
    trapped += number == SIGSYS;
    last_call = info->si_syscall;
    last_code = info->si_code;
    is_right = (long)info->si_call_addr == r[REG_RIP] && r[REG_RCX] == r[REG_RIP]
               && ((unsigned char *)r[REG_RIP])[-1] == 0x05 && info->si_arch == AUDIT_ARCH_X86_64
               && (int)r[REG_RAX] == info->si_syscall && info->si_errno == 0;
    r[REG_RAX] = 70000 + info->si_syscall;
}

static long blocked(long call, long a, long b, long c, long d)
{
    selector = 1;
    long result = raw(call, a, b, c, d);
    selector = 0;
    return result;
}

static volatile int other_may_call, other_has_called;

/* Meanwhile the first thread must make no calls: they would be trapped. */
static void *other(void *unused)
{
    while (!other_may_call)
        ;
    selector = 1;
    long pid = raw(SYS_getppid, 0, 0, 0, 0);
    selector = 0;
    other_has_called = 1;
    note("other thread is not asked", pid > 0);
    return unused;
}

int main(void)
{
    static const long calls[] = {SYS_getpid, SYS_mmap, SYS_rt_sigprocmask, SYS_clone, 444, 600, 70000, SYS_exit_group};
    struct sigaction action;
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    pthread_t thread;
    int pipes[2];
    char byte;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSYS, &action, NULL);
    note("strange mode", raw(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, 9, 0, 0));
    note("empty range", raw(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 4096, 0));
    note("off with range", raw(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 4096, 0));
    note("bad selector", prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, -1L));
    note("on", prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector));
    for (int round = 0; round < 2; round++)
        for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
            note("result", blocked(calls[i], 1, 0, 0, 0));
            note("call", last_call);
            note("code", last_code);
            note("right", is_right);
            note("allowed", raw(calls[i] == SYS_exit_group ? SYS_getpid : calls[i], -1, 0, 0, 0) != 70000 + calls[i]);
        }
    /* A wait among allowed calls still ends when a signal comes. */
    signal(SIGALRM, tick);
    if (pipe(pipes) != 0)
        return 1;
    action.sa_handler = tick;
    action.sa_flags = 0;
    sigaction(SIGALRM, &action, NULL);
    /* The first may come before the wait does. */
    struct itimerval seldom = {{0, 20000}, {0, 20000}};
    setitimer(ITIMER_REAL, &seldom, NULL);
    note("read", read(pipes[0], &byte, 1));
    note("ticks", ticks > 0);
    setitimer(ITIMER_REAL, &often, NULL);
    long wrong = 0, n = 0;
    while (ticks < 200) {
        is_let_through = 0;
        wrong += blocked(SYS_getpgid, n++, 0, 0, 0) != 70000 + SYS_getpgid && !is_let_through;
        wrong += raw(SYS_getppid, 0, 0, 0, 0) <= 0;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    note("wrong", wrong);
    pthread_create(&thread, NULL, other, NULL);
    other_may_call = 1;
    while (!other_has_called)
        ;
    pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0) {
        selector = 1;
        long made = raw(SYS_getppid, 0, 0, 0, 0) > 0 && raw(SYS_getppid, 0, 0, 0, 0) < 70000;
        _exit((int)made);
    }
    int status;
    note("waited", waitpid(child, &status, 0) == child);
    note("child is not asked", WEXITSTATUS(status));
    note("parent still is", blocked(SYS_getppid, 0, 0, 0, 0));
    /* A range: code outside it asks, code inside it does not. */
    unsigned char *elsewhere = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(elsewhere, "\xb8\x6e\0\0\0\x0f\x05\xc3", 8);
    long (*call)(void) = (long (*)(void))elsewhere;
    note("range", prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, elsewhere, 4096, &selector));
    selector = 1;
    long inside = call();
    selector = 0;
    note("inside", inside > 0 && inside < 70000 * 2 ? inside != 70000 + SYS_getppid : 0);
    note("outside", blocked(SYS_getppid, 0, 0, 0, 0));
    note("off", prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0));
    note("not blocked", blocked(SYS_getppid, 0, 0, 0, 0) != 70000 + SYS_getppid);
    note("trapped", trapped > 16);
    return 0;
}
