/* ptrace: attaching, seizing, being traced; stops, registers, memory, breakpoints, steps, system calls, signals, events, ends. */
#include "cases.h"
#include <elf.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <time.h>

#include <linux/ptrace.h>

#define EVENT(kind) (SIGTRAP | (kind) << 8)
#define EVENT_STOP(number) ((number) | PTRACE_EVENT_STOP << 8)
#define SYSCALL_STOP (SIGTRAP | 0x80)

static long trace(int request, pid_t task, uintptr_t address, uintptr_t data)
{
    return ptrace((enum __ptrace_request)request, task, (void *)address, (void *)data);
}

/* What a tracee stopped for: its signal, and above that its event; -1 - what `ended` gives. */
static long stop_of(pid_t task)
{
    int status;
    while (waitpid(task, &status, __WALL) < 0)
        if (errno != EINTR)
            return -100000 - errno;
    if (WIFSTOPPED(status))
        return status >> 8;
    return -1 - (WIFEXITED(status) ? WEXITSTATUS(status) : BY_SIGNAL(WTERMSIG(status)));
}

#define ENDED(status) (-1 - (status))

static struct user_regs_struct registers_of(pid_t task)
{
    struct user_regs_struct registers = {0};
    EXPECT(trace(PTRACE_GETREGS, task, 0, (uintptr_t)&registers), 0);
    return registers;
}

static void set_registers(pid_t task, struct user_regs_struct registers)
{
    EXPECT(trace(PTRACE_SETREGS, task, 0, (uintptr_t)&registers), 0);
}

long triple(long value);
extern const char triple_end[];
__asm__(".globl triple, triple_end\n"
        "triple: lea (%rdi,%rdi,2), %rax\n"
        "add $1, %rax\n"
        "sub $1, %rax\n"
        "triple_end: ret\n");

static struct gate begun, told;

/* A child that waits in read, and then runs `work`. */
static pid_t start(int (*work)(void))
{
    begun = make_gate();
    told = make_gate();
    pid_t child = fork();
    if (child == 0) {
        open_gate(begun);
        pass_gate(told);
        _exit(work());
    }
    pass_gate(begun);
    return child;
}

static pid_t attach_to(int (*work)(void))
{
    pid_t child = start(work);
    EXPECT(trace(PTRACE_ATTACH, child, 0, 0), 0);
    EXPECT(stop_of(child), SIGSTOP);
    return child;
}

static pid_t seize(int (*work)(void), long options)
{
    pid_t child = start(work);
    EXPECT(trace(PTRACE_SEIZE, child, 0, (uintptr_t)options), 0);
    return child;
}

static void go_on(pid_t task)
{
    EXPECT(trace(PTRACE_CONT, task, 0, 0), 0);
}

static int do_nothing(void)
{
    return 9;
}

static int do_triple(void)
{
    long sum = 0;
    for (long i = 0; i < 3000; i++)
        sum += triple(i) - i * 3;
    return (int)(sum + triple(7));
}

static void attach_and_detach(void)
{
    pid_t child = attach_to(do_triple);
    EXPECT(trace(PTRACE_DETACH, child, 0, 0), 0);
    open_gate(told);
    EXPECT(ended(child), 21);
}

static void attach_errors(void)
{
    EXPECT_ERROR(trace(PTRACE_ATTACH, getpid(), 0, 0), EPERM);
    EXPECT_ERROR(trace(PTRACE_ATTACH, 0x7ffffffe, 0, 0), ESRCH);
    EXPECT_ERROR(trace(PTRACE_SEIZE, 0, 0, 0), ESRCH);
    pid_t child = start(do_nothing);
    EXPECT_ERROR(trace(PTRACE_SEIZE, child, 1, 0), EIO);
    EXPECT_ERROR(trace(PTRACE_SEIZE, child, 0, 1ul << 40), EIO);
    EXPECT_ERROR(trace(PTRACE_INTERRUPT, child, 0, 0), ESRCH);
    EXPECT_ERROR(trace(PTRACE_CONT, child, 0, 0), ESRCH);
    open_gate(told);
    EXPECT(ended(child), 9);
}

static void attached_already(void)
{
    pid_t child = attach_to(do_nothing);
    EXPECT_ERROR(trace(PTRACE_ATTACH, child, 0, 0), EPERM);
    EXPECT_ERROR(trace(PTRACE_SEIZE, child, 0, 0), EPERM);
    pid_t other = fork();
    if (other == 0)
        _exit(trace(PTRACE_ATTACH, child, 0, 0) == -1 && errno == EPERM ? 3 : 4);
    EXPECT(ended(other), 3);
    go_on(child);
    open_gate(told);
    EXPECT(stop_of(child), ENDED(9));
}

static void not_stopped(void)
{
    pid_t child = seize(do_nothing, 0);
    struct user_regs_struct registers;
    EXPECT_ERROR(trace(PTRACE_GETREGS, child, 0, (uintptr_t)&registers), ESRCH);
    EXPECT_ERROR(trace(PTRACE_DETACH, child, 0, 0), ESRCH);
    open_gate(told);
    EXPECT(stop_of(child), ENDED(9));
}

static void interrupted(void)
{
    pid_t child = seize(do_nothing, 0);
    EXPECT(trace(PTRACE_INTERRUPT, child, 0, 0), 0);
    EXPECT(stop_of(child), EVENT_STOP(SIGTRAP));
    go_on(child);
    EXPECT(trace(PTRACE_INTERRUPT, child, 0, 0), 0);
    EXPECT(stop_of(child), EVENT_STOP(SIGTRAP));
    EXPECT(trace(PTRACE_DETACH, child, 0, 0), 0);
    open_gate(told);
    EXPECT(ended(child), 9);
}

static void born_and_attached(void)
{
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child == 0)
            for (;;)
                getppid();
        EXPECT(trace(PTRACE_ATTACH, child, 0, 0), 0);
        EXPECT(stop_of(child), SIGSTOP);
        struct user_regs_struct registers = registers_of(child);
        EXPECT(registers.rsp >> 40, (uintptr_t)&registers >> 40);
        kill(child, SIGKILL);
        EXPECT(stop_of(child), ENDED(BY_SIGNAL(SIGKILL)));
    }
}

static void register_sets(void)
{
    pid_t child = attach_to(do_nothing);
    struct user_regs_struct registers = {0}, again = registers_of(child);
    struct iovec place = {&registers, sizeof registers};
    EXPECT(trace(PTRACE_GETREGSET, child, NT_PRSTATUS, (uintptr_t)&place), 0);
    EXPECT(place.iov_len, sizeof registers);
    EXPECT(memcmp(&registers, &again, sizeof registers), 0);
    place.iov_len = 16;
    EXPECT(trace(PTRACE_GETREGSET, child, NT_PRSTATUS, (uintptr_t)&place), 0);
    EXPECT(place.iov_len, 16);
    struct user_fpregs_struct vectors = {0};
    place = (struct iovec){&vectors, sizeof vectors};
    EXPECT(trace(PTRACE_GETREGSET, child, NT_PRFPREG, (uintptr_t)&place), 0);
    EXPECT(vectors.mxcsr, 0x1f80);
    EXPECT_ERROR(trace(PTRACE_GETREGSET, child, 0x7777, (uintptr_t)&place), EINVAL);
    EXPECT(registers.cs, 0x33);
    EXPECT(registers.gs_base, 0);
    EXPECT(trace(PTRACE_PEEKUSER, child, offsetof(struct user, regs.rsp), 0), registers.rsp);
    EXPECT_ERROR(trace(PTRACE_PEEKUSER, child, 3, 0), EIO);
    go_on(child);
    open_gate(told);
    EXPECT(stop_of(child), ENDED(9));
}

static long break_at(pid_t child, const void *place)
{
    errno = 0;
    long code = trace(PTRACE_PEEKTEXT, child, (uintptr_t)place, 0);
    EXPECT(errno, 0);
    EXPECT(trace(PTRACE_POKETEXT, child, (uintptr_t)place, ((uintptr_t)code & ~0xfful) | 0xcc), 0);
    return code;
}

static void breakpoint(void)
{
    pid_t child = attach_to(do_triple);
    long code = break_at(child, triple);
    go_on(child);
    open_gate(told);
    EXPECT(stop_of(child), SIGTRAP);
    siginfo_t info;
    EXPECT(trace(PTRACE_GETSIGINFO, child, 0, (uintptr_t)&info), 0);
    EXPECT(info.si_code, SI_KERNEL);
    struct user_regs_struct registers = registers_of(child);
    EXPECT(registers.rip, (uintptr_t)triple + 1);
    EXPECT(registers.rdi, 0);
    EXPECT(trace(PTRACE_POKETEXT, child, (uintptr_t)triple, (uintptr_t)code), 0);
    registers.rip--;
    registers.rdi = 1;
    set_registers(child, registers);
    go_on(child);
    EXPECT(stop_of(child), ENDED(24));
}

/* Code that the child has run very often by then. */
static int wait_again(void)
{
    do_triple();
    open_gate(begun);
    pass_gate(told);
    return (int)triple(5);
}

static void breakpoint_in_hot_code(void)
{
    pid_t child = start(wait_again);
    open_gate(told);
    pass_gate(begun);
    EXPECT(trace(PTRACE_ATTACH, child, 0, 0), 0);
    EXPECT(stop_of(child), SIGSTOP);
    long code = break_at(child, triple_end);
    go_on(child);
    open_gate(told);
    EXPECT(stop_of(child), SIGTRAP);
    struct user_regs_struct registers = registers_of(child);
    EXPECT(registers.rip, (uintptr_t)triple_end + 1);
    EXPECT(registers.rax, 15);
    EXPECT(trace(PTRACE_POKETEXT, child, (uintptr_t)triple_end, (uintptr_t)code), 0);
    registers.rip--;
    registers.rax = 16;
    set_registers(child, registers);
    EXPECT(trace(PTRACE_DETACH, child, 0, 0), 0);
    EXPECT(ended(child), 16);
}

static int call_libc(void)
{
    return getppid() > 0 ? 5 : 6;
}

static void breakpoint_in_library(void)
{
    getppid();
    pid_t child = attach_to(call_libc);
    break_at(child, getppid);
    go_on(child);
    open_gate(told);
    EXPECT(stop_of(child), SIGTRAP);
    EXPECT(registers_of(child).rip, (uintptr_t)getppid + 1);
    kill(child, SIGKILL);
    EXPECT(stop_of(child), ENDED(BY_SIGNAL(SIGKILL)));
}

static void stepped(void)
{
    static const int lengths[] = {4, 4, 4, 1};
    pid_t child = attach_to(do_triple);
    long code = break_at(child, triple);
    go_on(child);
    open_gate(told);
    EXPECT(stop_of(child), SIGTRAP);
    EXPECT(trace(PTRACE_POKETEXT, child, (uintptr_t)triple, (uintptr_t)code), 0);
    struct user_regs_struct registers = registers_of(child);
    registers.rip = (uintptr_t)triple;
    set_registers(child, registers);
    uintptr_t wanted = (uintptr_t)triple;
    for (int i = 0; i < 3; i++) {
        wanted += (uintptr_t)lengths[i];
        EXPECT(trace(PTRACE_SINGLESTEP, child, 0, 0), 0);
        EXPECT(stop_of(child), SIGTRAP);
        siginfo_t info;
        EXPECT(trace(PTRACE_GETSIGINFO, child, 0, (uintptr_t)&info), 0);
        EXPECT(info.si_code, TRAP_TRACE);
        EXPECT(registers_of(child).rip, wanted);
    }
    EXPECT(trace(PTRACE_DETACH, child, 0, 0), 0);
    EXPECT(ended(child), 21);
}

static void stepped_over_call(void)
{
    pid_t child = attach_to(call_libc);
    EXPECT(trace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD), 0);
    open_gate(told);
    long stop;
    do {
        EXPECT(trace(PTRACE_SYSCALL, child, 0, 0), 0);
        stop = stop_of(child);
    } while (stop == SYSCALL_STOP && registers_of(child).orig_rax != SYS_getppid);
    EXPECT(stop, SYSCALL_STOP);
    uintptr_t behind = registers_of(child).rip;
    EXPECT(trace(PTRACE_SINGLESTEP, child, 0, 0), 0);
    EXPECT(stop_of(child), SIGTRAP);
    struct user_regs_struct registers = registers_of(child);
    EXPECT(registers.rip, behind);
    EXPECT(registers.rax, getpid());
    go_on(child);
    EXPECT(stop_of(child), ENDED(5));
}

static void memory_words(void)
{
    static volatile long cell = 40;
    pid_t child = attach_to(do_nothing);
    errno = 0;
    EXPECT(trace(PTRACE_PEEKDATA, child, (uintptr_t)&cell, 0), 40);
    EXPECT(trace(PTRACE_POKEDATA, child, (uintptr_t)&cell, 41), 0);
    EXPECT(trace(PTRACE_PEEKDATA, child, (uintptr_t)&cell, 0), 41);
    EXPECT(cell, 40);
    EXPECT_ERROR(trace(PTRACE_PEEKDATA, child, 8, 0), EIO);
    EXPECT_ERROR(trace(PTRACE_POKEDATA, child, 8, 1), EIO);
    kill(child, SIGKILL);
    EXPECT(stop_of(child), ENDED(BY_SIGNAL(SIGKILL)));
}

static int open_memory(pid_t child)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/mem", child);
    return open(path, O_RDWR);
}

static void memory_by_file(void)
{
    pid_t child = attach_to(do_triple);
    int memory = open_memory(child);
    unsigned char code[4] = {0};
    EXPECT(pread(memory, code, sizeof code, (off_t)(uintptr_t)triple), sizeof code);
    EXPECT(memcmp(code, (const void *)triple, sizeof code), 0);
    EXPECT(pwrite(memory, "\xcc", 1, (off_t)(uintptr_t)triple), 1);
    go_on(child);
    open_gate(told);
    EXPECT(stop_of(child), SIGTRAP);
    EXPECT(registers_of(child).rip, (uintptr_t)triple + 1);
    EXPECT(pwrite(memory, code, 1, (off_t)(uintptr_t)triple), 1);
    struct user_regs_struct registers = registers_of(child);
    registers.rip--;
    set_registers(child, registers);
    go_on(child);
    EXPECT(stop_of(child), ENDED(21));
}

static void memory_by_call(void)
{
    static volatile int cell = 1;
    int here = 77;
    pid_t child = attach_to(do_nothing);
    struct iovec ours = {&here, sizeof here}, theirs = {(void *)&cell, sizeof cell};
    EXPECT(process_vm_writev(child, &ours, 1, &theirs, 1, 0), sizeof here);
    here = 0;
    EXPECT(process_vm_readv(child, &ours, 1, &theirs, 1, 0), sizeof here);
    EXPECT(here, 77);
    EXPECT(cell, 1);
    theirs.iov_base = (void *)triple;
    EXPECT_ERROR(process_vm_writev(child, &ours, 1, &theirs, 1, 0), EFAULT);
    kill(child, SIGKILL);
    EXPECT(stop_of(child), ENDED(BY_SIGNAL(SIGKILL)));
}

static int make_calls(void)
{
    const long first = syscall(SYS_getuid), second = syscall(SYS_close, 5000);
    return (int)(second == 66) * 2 + (first == (long)getuid());
}

static void calls_entered_and_left(void)
{
    pid_t child = attach_to(make_calls);
    EXPECT(trace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD), 0);
    open_gate(told);
    long n_entered = 0, n_left = 0, stop;
    for (;;) {
        EXPECT(trace(PTRACE_SYSCALL, child, 0, 0), 0);
        stop = stop_of(child);
        if (stop != SYSCALL_STOP)
            break;
        struct __ptrace_syscall_info info = {0};
        EXPECT_TRUE(trace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, (uintptr_t)&info) > 0);
        struct user_regs_struct registers = registers_of(child);
        if (registers.orig_rax != SYS_close)
            continue;
        EXPECT(registers.rdi, 5000);
        EXPECT(info.instruction_pointer, registers.rip);
        EXPECT(info.stack_pointer, registers.rsp);
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
            n_entered++;
            EXPECT(info.entry.nr, SYS_close);
            EXPECT(info.entry.args[0], 5000);
            EXPECT((long)registers.rax, -ENOSYS);
        } else {
            n_left++;
            EXPECT(info.exit.rval, -EBADF);
            EXPECT(info.exit.is_error, 1);
            registers.rax = 66;
            set_registers(child, registers);
        }
    }
    EXPECT(stop, ENDED(3));
    EXPECT(n_entered, 1);
    EXPECT(n_left, 1);
}

static void calls_emulated(void)
{
    pid_t child = attach_to(make_calls);
    open_gate(told);
    long n_calls = 0;
    for (int i = 0; i < 40; i++) {
        if (trace(PTRACE_SYSEMU, child, 0, 0) != 0)
            return skip_case("no PTRACE_SYSEMU");
        if (stop_of(child) != SIGTRAP)
            return tell_wrong("no stop in a system call");
        struct user_regs_struct registers = registers_of(child);
        if (registers.orig_rax == SYS_exit_group) {
            EXPECT(registers.rdi, 3);
            break;
        }
        if (registers.orig_rax == SYS_read) {
            /* It waits still, and may do so. */
            EXPECT(trace(PTRACE_SYSCALL, child, 0, 0), 0);
            EXPECT(stop_of(child), SIGTRAP);
            registers = registers_of(child);
            registers.rax = 1;
        } else {
            registers.rax = registers.orig_rax == SYS_close ? 66 : getuid();
            n_calls++;
        }
        set_registers(child, registers);
    }
    EXPECT_TRUE(n_calls >= 3);
    kill(child, SIGKILL);
    EXPECT(stop_of(child), ENDED(BY_SIGNAL(SIGKILL)));
}

static volatile sig_atomic_t n_first, n_second;
static volatile int last_value;

static void count_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    n_first += number == SIGUSR1;
    n_second += number == SIGUSR2;
    last_value = info->si_value.sival_int;
}

static int raise_some(void)
{
    struct sigaction action = {.sa_sigaction = count_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    raise(SIGUSR1);
    raise(SIGUSR1);
    return n_first * 10 + n_second + (last_value == 55) * 100;
}

static void signal_kept_and_changed(void)
{
    pid_t child = attach_to(raise_some);
    go_on(child);
    open_gate(told);
    EXPECT(stop_of(child), SIGUSR1);
    siginfo_t info;
    EXPECT(trace(PTRACE_GETSIGINFO, child, 0, (uintptr_t)&info), 0);
    EXPECT(info.si_code, SI_TKILL);
    EXPECT(info.si_pid, child);
    go_on(child);
    EXPECT(stop_of(child), SIGUSR1);
    EXPECT(trace(PTRACE_CONT, child, 0, SIGUSR2), 0);
    EXPECT(stop_of(child), ENDED(1));
}

static void signal_told_otherwise(void)
{
    pid_t child = attach_to(raise_some);
    go_on(child);
    open_gate(told);
    EXPECT(stop_of(child), SIGUSR1);
    EXPECT(trace(PTRACE_CONT, child, 0, SIGUSR1), 0);
    EXPECT(stop_of(child), SIGUSR1);
    siginfo_t info;
    EXPECT(trace(PTRACE_GETSIGINFO, child, 0, (uintptr_t)&info), 0);
    info.si_code = SI_QUEUE;
    info.si_value.sival_int = 55;
    EXPECT(trace(PTRACE_SETSIGINFO, child, 0, (uintptr_t)&info), 0);
    EXPECT(trace(PTRACE_CONT, child, 0, SIGUSR1), 0);
    EXPECT(stop_of(child), ENDED(120));
}

static void into_handler(void)
{
    pid_t child = attach_to(raise_some);
    go_on(child);
    open_gate(told);
    EXPECT(stop_of(child), SIGUSR1);
    EXPECT(trace(PTRACE_SINGLESTEP, child, 0, SIGUSR1), 0);
    EXPECT(stop_of(child), SIGTRAP);
    struct user_regs_struct registers = registers_of(child);
    EXPECT(registers.rip, (uintptr_t)count_signal);
    EXPECT(registers.rdi, SIGUSR1);
    kill(child, SIGKILL);
    EXPECT(stop_of(child), ENDED(BY_SIGNAL(SIGKILL)));
}

static void signal_masks(void)
{
    pid_t child = attach_to(raise_some);
    uint64_t mask = 0, blocked = 1ul << (SIGUSR1 - 1);
    EXPECT(trace(PTRACE_GETSIGMASK, child, sizeof mask, (uintptr_t)&mask), 0);
    EXPECT(mask, 0);
    EXPECT(trace(PTRACE_SETSIGMASK, child, sizeof blocked, (uintptr_t)&blocked), 0);
    go_on(child);
    open_gate(told);
    EXPECT(stop_of(child), ENDED(0));
}

static void pending_peeked(void)
{
    pid_t child = attach_to(do_nothing);
    uint64_t blocked = 1ul << (SIGUSR1 - 1);
    EXPECT(trace(PTRACE_SETSIGMASK, child, sizeof blocked, (uintptr_t)&blocked), 0);
    EXPECT(sigqueue(child, SIGUSR1, (union sigval){.sival_int = 12}), 0);
    struct __ptrace_peeksiginfo_args which = {.off = 0, .flags = PTRACE_PEEKSIGINFO_SHARED, .nr = 4};
    siginfo_t infos[4];
    EXPECT(trace(PTRACE_PEEKSIGINFO, child, (uintptr_t)&which, (uintptr_t)infos), 1);
    EXPECT(infos[0].si_value.sival_int, 12);
    kill(child, SIGKILL);
    EXPECT(stop_of(child), ENDED(BY_SIGNAL(SIGKILL)));
}

static int fault(void)
{
    *(volatile int *)NOWHERE = 1;
    return 1;
}

static void fault_seen(void)
{
    pid_t child = attach_to(fault);
    go_on(child);
    open_gate(told);
    EXPECT(stop_of(child), SIGSEGV);
    siginfo_t info;
    EXPECT(trace(PTRACE_GETSIGINFO, child, 0, (uintptr_t)&info), 0);
    EXPECT(info.si_code, SEGV_MAPERR);
    EXPECT(info.si_addr, NOWHERE);
    uintptr_t at = registers_of(child).rip;
    EXPECT_TRUE(at >= (uintptr_t)fault && at < (uintptr_t)fault + 64);
    EXPECT(trace(PTRACE_CONT, child, 0, SIGSEGV), 0);
    EXPECT(stop_of(child), ENDED(BY_SIGNAL(SIGSEGV)));
}

static void group_stop_seized(void)
{
    pid_t child = seize(do_nothing, 0);
    EXPECT(kill(child, SIGTSTP), 0);
    EXPECT(stop_of(child), SIGTSTP);
    EXPECT(trace(PTRACE_CONT, child, 0, SIGTSTP), 0);
    EXPECT(stop_of(child), EVENT_STOP(SIGTSTP));
    EXPECT(trace(PTRACE_LISTEN, child, 0, 0), 0);
    EXPECT(kill(child, SIGCONT), 0);
    EXPECT(stop_of(child), EVENT_STOP(SIGTRAP));
    go_on(child);
    EXPECT(stop_of(child), SIGCONT);
    EXPECT(trace(PTRACE_CONT, child, 0, SIGCONT), 0);
    open_gate(told);
    EXPECT(stop_of(child), ENDED(9));
}

static void group_stop_attached(void)
{
    pid_t child = attach_to(do_nothing);
    go_on(child);
    EXPECT(kill(child, SIGTSTP), 0);
    EXPECT(stop_of(child), SIGTSTP);
    EXPECT(trace(PTRACE_CONT, child, 0, SIGTSTP), 0);
    EXPECT(stop_of(child), SIGTSTP);
    siginfo_t info;
    EXPECT_ERROR(trace(PTRACE_GETSIGINFO, child, 0, (uintptr_t)&info), EINVAL);
    go_on(child);
    open_gate(told);
    EXPECT(stop_of(child), ENDED(9));
}

static void stopped_before(void)
{
    pid_t child = start(do_nothing);
    int status;
    EXPECT(kill(child, SIGSTOP), 0);
    EXPECT(waitpid(child, &status, WUNTRACED), child);
    EXPECT(trace(PTRACE_SEIZE, child, 0, 0), 0);
    EXPECT(stop_of(child), EVENT_STOP(SIGSTOP));
    /* Let go it stands still as before. */
    EXPECT(trace(PTRACE_DETACH, child, 0, 0), 0);
    open_gate(told);
    siginfo_t info = {0};
    EXPECT(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG), 0);
    EXPECT(info.si_pid, 0);
    EXPECT(kill(child, SIGCONT), 0);
    EXPECT(ended(child), 9);
}

static int fork_once(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit((int)triple(2));
    return (int)ended(child) + 1;
}

static int fork_as_vfork(void)
{
    pid_t child = vfork();
    if (child == 0)
        _exit(6);
    return (int)ended(child) + 1;
}

static void *run_thread(void *value)
{
    return (void *)triple((long)value);
}

static int start_thread(void)
{
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, run_thread, (void *)2);
    pthread_join(thread, &result);
    return (int)(long)result + 1;
}

/* Lets `child` and what it makes run to their ends: the events of `child`, each by a bit, and what it ended with. */
static void follow_events(pid_t child, long *events, long *end, long *message)
{
    int status;
    pid_t task;
    while ((task = waitpid(-1, &status, __WALL)) > 0) {
        if (!WIFSTOPPED(status)) {
            if (task == child)
                *end = WIFEXITED(status) ? WEXITSTATUS(status) : BY_SIGNAL(WTERMSIG(status));
            continue;
        }
        const int event = status >> 16;
        if (task == child && event != 0 && event != PTRACE_EVENT_STOP) {
            *events |= 1l << event;
            unsigned long value = 0;
            EXPECT(trace(PTRACE_GETEVENTMSG, task, 0, (uintptr_t)&value), 0);
            *message = (long)value;
        }
        trace(PTRACE_CONT, task, 0, event == 0 ? (uintptr_t)WSTOPSIG(status) : 0);
    }
}

static void events_of(int (*work)(void), long options, long wanted_events, long wanted_end)
{
    pid_t child = seize(work, options);
    long events = 0, end = -1, message = 0;
    open_gate(told);
    follow_events(child, &events, &end, &message);
    EXPECT(events, wanted_events);
    EXPECT(end, wanted_end);
    EXPECT_TRUE(message != 0);
}

static void fork_followed(void)
{
    events_of(fork_once, PTRACE_O_TRACEFORK, 1 << PTRACE_EVENT_FORK, 7);
}

static void vfork_followed(void)
{
    events_of(fork_as_vfork, PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE,
              1 << PTRACE_EVENT_VFORK | 1 << PTRACE_EVENT_VFORK_DONE, 7);
}

static void clone_followed(void)
{
    events_of(start_thread, PTRACE_O_TRACECLONE, 1 << PTRACE_EVENT_CLONE, 7);
}

static void exit_seen(void)
{
    pid_t child = seize(do_nothing, PTRACE_O_TRACEEXIT);
    open_gate(told);
    EXPECT(stop_of(child), EVENT(PTRACE_EVENT_EXIT));
    unsigned long status = 0;
    EXPECT(trace(PTRACE_GETEVENTMSG, child, 0, (uintptr_t)&status), 0);
    EXPECT(status, 9 << 8);
    go_on(child);
    EXPECT(stop_of(child), ENDED(9));
}

static int execute(void)
{
    execl("/proc/self/exe", "ptrace", "no_such_case", NULL);
    return 1;
}

static void exec_seen(void)
{
    pid_t child = seize(execute, PTRACE_O_TRACEEXEC);
    open_gate(told);
    EXPECT(stop_of(child), EVENT(PTRACE_EVENT_EXEC));
    unsigned long before = 0;
    EXPECT(trace(PTRACE_GETEVENTMSG, child, 0, (uintptr_t)&before), 0);
    EXPECT(before, child);
    go_on(child);
    EXPECT(stop_of(child), ENDED(0));
}

static void exec_traps(void)
{
    pid_t child = attach_to(execute);
    go_on(child);
    open_gate(told);
    EXPECT(stop_of(child), SIGTRAP);
    go_on(child);
    EXPECT(stop_of(child), ENDED(0));
}

static void asked_to_be_traced(void)
{
    pid_t child = fork();
    if (child == 0) {
        if (trace(PTRACE_TRACEME, 0, 0, 0) != 0)
            _exit(1);
        if (trace(PTRACE_TRACEME, 0, 0, 0) != -1 || errno != EPERM)
            _exit(2);
        raise(SIGUSR1);
        _exit(execute());
    }
    EXPECT(stop_of(child), SIGUSR1);
    go_on(child);
    EXPECT(stop_of(child), SIGTRAP);
    struct user_regs_struct registers = registers_of(child);
    EXPECT(registers.rax, 0);
    EXPECT(registers.rbx, 0);
    EXPECT(registers.orig_rax, SYS_execve);
    go_on(child);
    EXPECT(stop_of(child), ENDED(0));
}

static pid_t trace_from(pid_t tracee, long options)
{
    struct gate traced = make_gate();
    pid_t tracer = fork();
    if (tracer == 0) {
        if (trace(PTRACE_SEIZE, tracee, 0, (uintptr_t)options) == 0 && trace(PTRACE_INTERRUPT, tracee, 0, 0) == 0 &&
            stop_of(tracee) == EVENT_STOP(SIGTRAP))
            open_gate(traced);
        for (;;)
            pause();
    }
    pass_gate(traced);
    return tracer;
}

static void tracer_killed(void)
{
    pid_t child = start(do_nothing), tracer = trace_from(child, 0);
    EXPECT(kill(tracer, SIGKILL), 0);
    EXPECT(ended(tracer), BY_SIGNAL(SIGKILL));
    open_gate(told);
    EXPECT(ended(child), 9);
}

static void killed_with_tracer(void)
{
    pid_t child = start(do_nothing), tracer = trace_from(child, PTRACE_O_EXITKILL);
    EXPECT(kill(tracer, SIGKILL), 0);
    EXPECT(ended(tracer), BY_SIGNAL(SIGKILL));
    EXPECT(ended(child), BY_SIGNAL(SIGKILL));
}

static void not_told_to_parent(void)
{
    pid_t child = start(do_nothing), tracer = trace_from(child, 0);
    siginfo_t info = {0};
    EXPECT(waitid(P_PID, (id_t)child, &info, WEXITED | WSTOPPED | WNOHANG), 0);
    EXPECT(info.si_pid, 0);
    kill(tracer, SIGKILL);
    EXPECT(ended(tracer), BY_SIGNAL(SIGKILL));
    open_gate(told);
    EXPECT(ended(child), 9);
}

static volatile int *cells;

static void *count_up(void *nothing)
{
    cells[1] = gettid();
    for (;;)
        cells[0]++;
    return nothing;
}

static int count_in_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, count_up, NULL);
    for (;;)
        pause();
    return 0;
}

static void one_thread_attached(void)
{
    cells = shared_ints();
    pid_t child = start(count_in_thread);
    open_gate(told);
    while (cells[0] == 0)
        sched_yield();
    pid_t thread = cells[1];
    EXPECT(trace(PTRACE_ATTACH, thread, 0, 0), 0);
    EXPECT(stop_of(thread), SIGSTOP);
    uintptr_t at = registers_of(thread).rip;
    EXPECT_TRUE(at >= (uintptr_t)count_up && at < (uintptr_t)count_up + 200);
    const int then = cells[0];
    sched_yield();
    EXPECT(cells[0], then);
    EXPECT(trace(PTRACE_DETACH, thread, 0, 0), 0);
    while (cells[0] == then)
        sched_yield();
    EXPECT(kill(child, SIGKILL), 0);
    EXPECT(ended(child), BY_SIGNAL(SIGKILL));
}

static pid_t other_tracee;

static void *ask_from_thread(void *nothing)
{
    struct user_regs_struct registers;
    EXPECT_ERROR(trace(PTRACE_GETREGS, other_tracee, 0, (uintptr_t)&registers), ESRCH);
    return nothing;
}

static void asked_by_other_thread(void)
{
    other_tracee = attach_to(do_nothing);
    pthread_t thread;
    pthread_create(&thread, NULL, ask_from_thread, NULL);
    pthread_join(thread, NULL);
    go_on(other_tracee);
    open_gate(told);
    EXPECT(stop_of(other_tracee), ENDED(9));
}

static int sleep_long(void)
{
    struct timespec time = {0, 60000000}, rest = {0};
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    open_gate(begun);
    const int result = nanosleep(&time, &rest);
    clock_gettime(CLOCK_MONOTONIC, &end);
    const long passed_ns = (end.tv_sec - start.tv_sec) * 1000000000 + end.tv_nsec - start.tv_nsec;
    return result == 0 && passed_ns >= 60000000 ? 4 : 5;
}

static void call_goes_on(void)
{
    pid_t child = start(sleep_long);
    open_gate(told);
    pass_gate(begun);
    EXPECT(trace(PTRACE_SEIZE, child, 0, 0), 0);
    EXPECT(trace(PTRACE_INTERRUPT, child, 0, 0), 0);
    EXPECT(stop_of(child), EVENT_STOP(SIGTRAP));
    EXPECT(trace(PTRACE_DETACH, child, 0, 0), 0);
    EXPECT(ended(child), 4);
}

static int wait_for_signal(void)
{
    sigset_t mask;
    struct sigaction action = {.sa_sigaction = count_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigprocmask(SIG_BLOCK, &mask, NULL);
    open_gate(begun);
    sigemptyset(&mask);
    const int result = sigsuspend(&mask);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    return (result == -1) + n_first * 2 + sigismember(&mask, SIGUSR1) * 4;
}

static void suspended_goes_on(void)
{
    pid_t child = start(wait_for_signal);
    open_gate(told);
    pass_gate(begun);
    EXPECT(trace(PTRACE_ATTACH, child, 0, 0), 0);
    EXPECT(stop_of(child), SIGSTOP);
    EXPECT(trace(PTRACE_DETACH, child, 0, 0), 0);
    EXPECT(kill(child, SIGUSR1), 0);
    EXPECT(ended(child), 7);
}

static int filter_getppid(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | 5),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        return 1;
    return syscall(SYS_getppid) == 99 ? 2 : 3;
}

static void filter_asks(void)
{
    pid_t child = seize(filter_getppid, PTRACE_O_TRACESECCOMP);
    open_gate(told);
    EXPECT(stop_of(child), EVENT(PTRACE_EVENT_SECCOMP));
    unsigned long data = 0;
    EXPECT(trace(PTRACE_GETEVENTMSG, child, 0, (uintptr_t)&data), 0);
    EXPECT(data, 5);
    struct user_regs_struct registers = registers_of(child);
    EXPECT(registers.orig_rax, SYS_getppid);
    registers.orig_rax = (uint64_t)-1;
    registers.rax = 99;
    set_registers(child, registers);
    go_on(child);
    EXPECT(stop_of(child), ENDED(2));
}

static void hardware_breakpoint(void)
{
    pid_t child = attach_to(do_triple);
    if (trace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg[0]), (uintptr_t)triple) != 0 ||
        trace(PTRACE_POKEUSER, child, offsetof(struct user, u_debugreg[7]), 1) != 0) {
        skip_case("no hardware breakpoints");
    } else {
        go_on(child);
        open_gate(told);
        EXPECT(stop_of(child), SIGTRAP);
        EXPECT(registers_of(child).rip, (uintptr_t)triple);
    }
    kill(child, SIGKILL);
    EXPECT(stop_of(child), ENDED(BY_SIGNAL(SIGKILL)));
}

static void parent_attached(void)
{
    pid_t child = fork();
    if (child == 0) {
        struct gate ready = make_gate(), go = make_gate();
        pid_t tracer = fork();
        if (tracer == 0) {
            pid_t parent = getppid();
            pass_gate(go);
            if (trace(PTRACE_ATTACH, parent, 0, 0) != 0 || stop_of(parent) != SIGSTOP)
                _exit(1);
            const long code = trace(PTRACE_PEEKTEXT, parent, (uintptr_t)triple, 0);
            trace(PTRACE_POKETEXT, parent, (uintptr_t)triple, ((uintptr_t)code & ~0xfful) | 0xcc);
            trace(PTRACE_CONT, parent, 0, 0);
            open_gate(ready);
            if (stop_of(parent) != SIGTRAP)
                _exit(2);
            trace(PTRACE_POKETEXT, parent, (uintptr_t)triple, (uintptr_t)code);
            struct user_regs_struct registers = registers_of(parent);
            registers.rip--;
            registers.rdi = 8;
            set_registers(parent, registers);
            trace(PTRACE_DETACH, parent, 0, 0);
            _exit(wrong[0] ? 3 : 4);
        }
        prctl(PR_SET_PTRACER, tracer);
        open_gate(go);
        pass_gate(ready);
        const int tripled = (int)triple(1);
        _exit(tripled + (int)ended(tracer));
    }
    EXPECT(ended(child), 28);
}

static const struct one_case cases[] = {
    CASE(attach_and_detach),
    CASE(attach_errors),
    CASE(attached_already),
    CASE(not_stopped),
    CASE(interrupted),
    CASE(born_and_attached),
    CASE(register_sets),
    CASE(breakpoint),
    CASE(breakpoint_in_hot_code),
    CASE(breakpoint_in_library),
    CASE(hardware_breakpoint),
    CASE(stepped),
    CASE(stepped_over_call),
    CASE(memory_words),
    CASE(memory_by_file),
    CASE(memory_by_call),
    CASE(calls_entered_and_left),
    CASE(calls_emulated),
    CASE(call_goes_on),
    CASE(suspended_goes_on),
    CASE(signal_kept_and_changed),
    CASE(signal_told_otherwise),
    CASE(into_handler),
    CASE(signal_masks),
    CASE(pending_peeked),
    CASE(fault_seen),
    CASE(filter_asks),
    CASE(group_stop_seized),
    CASE(group_stop_attached),
    CASE(stopped_before),
    CASE(fork_followed),
    CASE(vfork_followed),
    CASE(clone_followed),
    CASE(exit_seen),
    CASE(exec_seen),
    CASE(exec_traps),
    CASE(asked_to_be_traced),
    CASE(tracer_killed),
    CASE(killed_with_tracer),
    CASE(not_told_to_parent),
    CASE(one_thread_attached),
    CASE(asked_by_other_thread),
    CASE(parent_attached),
};

int main(int count, char **arguments)
{
    (void)count;
    return RUN_CASES(cases, arguments + 1);
}
