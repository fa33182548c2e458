/* what: clone3 as fork, with a stack of its own, pidfd, tid, and every error
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int handled;
static char stack[65536] __attribute__((aligned(64)));

static void handler(int number) { handled = number; }

static long start(void *arguments, size_t size) { return syscall(SYS_clone3, arguments, size); }

static void error(const char *what, void *arguments, size_t size)
{
    errno = 0;
    long result = start(arguments, size);
    if (result == 0)
        _exit(0);
    int status;
    if (result > 0)
        waitpid((pid_t)result, &status, __WALL);
    printf("%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "started");
}

/* On the child's own stack nothing of this one is there: assembly up to the exit. */
static long start_on(struct clone_args *arguments)
{
    long result;
    __asm__ volatile("syscall\n test %%rax, %%rax\n jnz 1f\n lea -8(%%rsp), %%rdi\n sub %%r12, %%rdi\n cmp $65528, %%rdi\n setne %%dil\n"
                     "movzbl %%dil, %%edi\n add $30, %%edi\n mov $231, %%eax\n syscall\n 1:"
                     : "=a"(result) : "a"(SYS_clone3), "D"(arguments), "S"(sizeof *arguments)
                     : "rcx", "r11", "memory");
    return result;
}

int main(void)
{
    int status;
    setvbuf(stdout, NULL, _IONBF, 0);
    signal(SIGUSR1, handler);
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    for (int i = 0; i < 3; i++) {
        pid_t pid = (pid_t)start(&arguments, sizeof arguments);
        if (pid == 0)
            _exit(10 + i);
        waitpid(pid, &status, 0);
        printf("fork: %d\n", WEXITSTATUS(status));
    }
    int descriptor = -1, tid = 0;
    struct clone_args more = {.flags = CLONE_PIDFD | CLONE_PARENT_SETTID, .pidfd = (uintptr_t)&descriptor, .parent_tid = (uintptr_t)&tid,
                              .exit_signal = SIGCHLD};
    pid_t pid = (pid_t)start(&more, sizeof more);
    if (pid == 0)
        _exit(20);
    siginfo_t info;
    waitid(P_PIDFD, (id_t)descriptor, &info, WEXITED);
    printf("pidfd: %d, tid %d\n", info.si_status, tid == pid);
    struct clone_args own = {.exit_signal = SIGCHLD, .stack = (uintptr_t)stack, .stack_size = sizeof stack};
    {
        register char *base __asm__("r12") = stack;
        __asm__ volatile("" : "+r"(base));
        pid = (pid_t)start_on(&own);
        __asm__ volatile("" : : "r"(base));
    }
    waitpid(pid, &status, 0);
    printf("own stack: %d\n", WEXITSTATUS(status) >= 30);
    error("no memory", (void *)8, sizeof arguments);
    error("too small", &arguments, 56);
    error("smallest", &arguments, 64);
    static char large[8192];
    memcpy(large, &arguments, sizeof arguments);
    large[150] = 1;
    error("larger, something behind", large, 200);
    error("beyond a page", large, 5000);
    struct clone_args bad = {.flags = CLONE_THREAD, .exit_signal = 0};
    error("thread without shared handlers", &bad, sizeof bad);
    bad = (struct clone_args){.flags = CLONE_SIGHAND, .exit_signal = SIGCHLD};
    error("handlers without memory", &bad, sizeof bad);
    bad = (struct clone_args){.exit_signal = 65};
    error("bad exit signal", &bad, sizeof bad);
    bad = (struct clone_args){.exit_signal = SIGCHLD, .stack = (uintptr_t)stack};
    error("stack without size", &bad, sizeof bad);
    bad = (struct clone_args){.exit_signal = SIGCHLD, .stack_size = 4096};
    error("size without stack", &bad, sizeof bad);
    bad = (struct clone_args){.flags = 1ull << 40, .exit_signal = SIGCHLD};
    error("unknown flag", &bad, sizeof bad);
    bad = (struct clone_args){.flags = CLONE_DETACHED, .exit_signal = SIGCHLD};
    error("detached", &bad, sizeof bad);
    printf("handled %d\n", handled);
    return 0;
}
