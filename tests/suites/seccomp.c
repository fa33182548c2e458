/* seccomp: refused filters, every action, what filters see, who has them, who is asked, strict mode: effects. */
#include "cases.h"
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <ucontext.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))
#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define ARGUMENT(number) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (number))
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (skip))
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define ALLOW ANSWER(SECCOMP_RET_ALLOW)

/* A call that no library makes by itself. */
#define CALL SYS_getpriority

static long seccomp(unsigned operation, unsigned flags, const void *arguments)
{
    return syscall(SYS_seccomp, operation, flags, arguments);
}

static long install(const struct sock_filter *code, size_t count, unsigned flags)
{
    struct sock_fprog program = {(unsigned short)count, (struct sock_filter *)code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return seccomp(SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* A filter that answers one call, and allows all others. */
static long answer(long call, unsigned action, unsigned flags)
{
    const struct sock_filter code[] = {FIELD(nr), UNLESS((unsigned)call, 1), ANSWER(action), ALLOW};
    return install(code, COUNT(code), flags);
}

static long make_call(long argument)
{
    return syscall(CALL, PRIO_PROCESS, argument);
}

static void bad_operations(void)
{
    unsigned action = SECCOMP_RET_ERRNO, unknown = 0x00010000;
    EXPECT_ERROR(seccomp(99, 0, NULL), EINVAL);
    EXPECT_ERROR(seccomp(SECCOMP_SET_MODE_STRICT, 1, NULL), EINVAL);
    EXPECT_ERROR(seccomp(SECCOMP_SET_MODE_STRICT, 0, &action), EINVAL);
    EXPECT(seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &action), 0);
    EXPECT_ERROR(seccomp(SECCOMP_GET_ACTION_AVAIL, 1, &action), EINVAL);
    EXPECT_ERROR(seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &unknown), EOPNOTSUPP);
    EXPECT_ERROR(seccomp(SECCOMP_GET_ACTION_AVAIL, 0, NOWHERE), EFAULT);
    EXPECT_ERROR(prctl(PR_SET_SECCOMP, 3, 0, 0, 0), EINVAL);
    EXPECT(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 0);
}

static void all_actions_there(void)
{
    static const unsigned actions[] = {SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP,
                                       SECCOMP_RET_ERRNO,        SECCOMP_RET_USER_NOTIF,  SECCOMP_RET_TRACE,
                                       SECCOMP_RET_LOG,          SECCOMP_RET_ALLOW};
    struct seccomp_notif_sizes sizes = {0};
    for (size_t i = 0; i < COUNT(actions); i++)
        EXPECT(seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &actions[i]), 0);
    EXPECT(seccomp(SECCOMP_GET_NOTIF_SIZES, 0, &sizes), 0);
    EXPECT(sizes.seccomp_data, sizeof(struct seccomp_data));
    EXPECT_ERROR(seccomp(SECCOMP_GET_NOTIF_SIZES, 1, &sizes), EINVAL);
    EXPECT_ERROR(seccomp(SECCOMP_GET_NOTIF_SIZES, 0, NOWHERE), EFAULT);
}

static void refused(const char *what, struct sock_filter first)
{
    const struct sock_filter code[] = {first, ALLOW};
    expect_error(what, (errno = 0, install(code, COUNT(code), 0)), EINVAL);
}

static void bad_programs(void)
{
    static struct sock_filter longest[BPF_MAXINSNS + 1];
    const struct sock_filter no_answer[] = {FIELD(nr)}, allow = ALLOW;
    struct sock_fprog unreadable = {1, NOWHERE};
    for (size_t i = 0; i < COUNT(longest); i++)
        longest[i] = allow;
    EXPECT_ERROR(install(longest, 0, 0), EINVAL);
    EXPECT_ERROR(install(longest, BPF_MAXINSNS + 1, 0), EINVAL);
    EXPECT_ERROR(install(no_answer, 1, 0), EINVAL);
    EXPECT_ERROR(seccomp(SECCOMP_SET_MODE_FILTER, 0, &unreadable), EFAULT);
    EXPECT_ERROR(seccomp(SECCOMP_SET_MODE_FILTER, 0, NULL), EFAULT);
    EXPECT_ERROR(install(&allow, 1, 0x80), EINVAL);
    EXPECT_ERROR(install(&allow, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC), EINVAL);
    EXPECT_ERROR(install(&allow, 1, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV), EINVAL);
    EXPECT(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 0);
}

static void bad_instructions(void)
{
    refused("odd offset", (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2));
    refused("offset beyond", (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, sizeof(struct seccomp_data)));
    refused("load of a byte", (struct sock_filter)BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0));
    refused("load of a half", (struct sock_filter)BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0));
    refused("indexed load", (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0));
    refused("header's length", (struct sock_filter)BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0));
    refused("jump beyond", (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0));
    refused("branch beyond", (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0));
    refused("division by zero", (struct sock_filter)BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 0));
    refused("remainder", (struct sock_filter)BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, 3));
    refused("wide shift", (struct sock_filter)BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 32));
    refused("no such memory", (struct sock_filter)BPF_STMT(BPF_ST, BPF_MEMWORDS));
    refused("memory that nothing is in", (struct sock_filter)BPF_STMT(BPF_LD | BPF_MEM, 3));
    refused("unknown", (struct sock_filter)BPF_STMT(0xffff, 0));
    EXPECT_TRUE(make_call(0) != -1);
}

static void privileges_needed(void)
{
    const struct sock_filter allow = ALLOW;
    struct sock_fprog program = {1, (struct sock_filter *)&allow};
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0) {
        skip_case("no other user");
        return;
    }
    EXPECT_ERROR(seccomp(SECCOMP_SET_MODE_FILTER, 0, &program), EACCES);
    EXPECT_ERROR(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), EACCES);
    EXPECT_ERROR(prctl(PR_SET_NO_NEW_PRIVS, 2, 0, 0, 0), EINVAL);
    EXPECT_ERROR(prctl(PR_SET_NO_NEW_PRIVS, 1, 1, 0, 0), EINVAL);
    EXPECT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0);
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    EXPECT_ERROR(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL);
    EXPECT(seccomp(SECCOMP_SET_MODE_FILTER, 0, &program), 0);
    EXPECT(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
}

static void mode_told(void)
{
    const struct sock_filter allow = ALLOW;
    struct sock_fprog program = {1, (struct sock_filter *)&allow};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    EXPECT(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 2);
    EXPECT_ERROR(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), EINVAL); /* No way from one mode to the other. */
}

static void errors_given(void)
{
    static const struct {
        unsigned given;
        long result;
        int error;
    } answers[] = {{EPERM, -1, EPERM}, {EINTR, -1, EINTR}, {4095, -1, 4095}, {5000, -1, 4095}, {0xffff, -1, 4095}};
    for (size_t i = 0; i < COUNT(answers); i++) {
        pid_t child = fork();
        if (child == 0) {
            answer(CALL, SECCOMP_RET_ERRNO | answers[i].given, 0);
            errno = 0;
            _exit(make_call(0) != answers[i].result || errno != answers[i].error);
        }
        EXPECT(ended(child), 0);
    }
    EXPECT(answer(CALL, SECCOMP_RET_ERRNO, 0), 0);
    EXPECT(make_call(77), 0); /* Error 0: it has not been made, and has not failed. */
}

static volatile siginfo_t told;
static volatile int n_told, given_back;

static void note_call(int number, siginfo_t *info, void *context)
{
    ucontext_t *state = context;
    (void)number;
    n_told++;
    *(siginfo_t *)&told = *info;
    /* The call's number is in the register that its result comes in. */
    if (state->uc_mcontext.gregs[REG_RAX] == info->si_syscall)
        state->uc_mcontext.gregs[REG_RAX] = given_back;
}

static void handle_calls(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO, .sa_sigaction = note_call};
    EXPECT(sigaction(SIGSYS, &action, NULL), 0);
}

static void trapped(void)
{
    handle_calls();
    EXPECT(answer(CALL, SECCOMP_RET_TRAP | 0x123, 0), 0);
    for (given_back = 5; given_back < 50; given_back++)
        EXPECT(make_call(0), given_back);
    EXPECT(n_told, 45);
    EXPECT(told.si_signo, SIGSYS);
    EXPECT(told.si_code, 1); /* SYS_SECCOMP */
    EXPECT(told.si_errno, 0x123);
    EXPECT(told.si_syscall, CALL);
    EXPECT(told.si_arch, AUDIT_ARCH_X86_64);
    unsigned char before[2];
    memcpy(before, (char *)told.si_call_addr - 2, 2);
    EXPECT(before[0] << 8 | before[1], 0x0f05);
}

static void trapped_and_blocked(void)
{
    pid_t child = fork();
    if (child == 0) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGSYS);
        handle_calls();
        sigprocmask(SIG_BLOCK, &set, NULL);
        answer(CALL, SECCOMP_RET_TRAP, 0);
        make_call(0);
        _exit(0);
    }
    EXPECT(ended(child), BY_SIGNAL(SIGSYS)); /* It is forced. */
    child = fork();
    if (child == 0) {
        signal(SIGSYS, SIG_IGN);
        answer(CALL, SECCOMP_RET_TRAP, 0);
        make_call(0);
        _exit(0);
    }
    EXPECT(ended(child), BY_SIGNAL(SIGSYS));
}

static void calls_in_handler(int number, siginfo_t *info, void *context)
{
    ucontext_t *state = context;
    (void)number;
    n_told++;
    state->uc_mcontext.gregs[REG_RAX] = info->si_syscall == SYS_getuid ? make_call(3) + 1 : 40;
}

static void trapped_in_a_handler(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER, .sa_sigaction = calls_in_handler};
    sigaction(SIGSYS, &action, NULL);
    EXPECT(answer(CALL, SECCOMP_RET_TRAP, 0), 0);
    EXPECT(answer(SYS_getuid, SECCOMP_RET_TRAP, 0), 0);
    EXPECT(syscall(SYS_getuid), 41);
    EXPECT(n_told, 2);
}

static void killed(unsigned action, int *core)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        answer(CALL, action, 0);
        make_call(0);
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT(WTERMSIG(status), SIGSYS);
    *core = status;
}

static void process_killed(void)
{
    int status, second;
    killed(SECCOMP_RET_KILL_PROCESS, &status);
    killed(SECCOMP_RET_KILL_PROCESS | 0xabc, &second);
    EXPECT(status, second);
    /* What is unknown kills as well. */
    killed(0x00010000, &second);
    EXPECT(status, second);
}

static void last_thread_killed(void)
{
    int status;
    killed(SECCOMP_RET_KILL_THREAD, &status);
    EXPECT(WTERMSIG(status), SIGSYS);
}

static volatile int step;

static void *die_of_a_call(void *action)
{
    answer(CALL, (unsigned)(uintptr_t)action, 0);
    step = 1;
    make_call(0);
    step = 2;
    return NULL;
}

static void one_thread_killed(void)
{
    pthread_t thread;
    pid_t child = fork();
    if (child == 0) {
        pthread_create(&thread, NULL, die_of_a_call, (void *)(uintptr_t)SECCOMP_RET_KILL_THREAD);
        pthread_join(thread, NULL); /* The kernel clears its number. */
        _exit(step == 1 && make_call(0) != -1 ? 7 : 8);
    }
    EXPECT(ended(child), 7);
    child = fork();
    if (child == 0) {
        pthread_create(&thread, NULL, die_of_a_call, (void *)(uintptr_t)SECCOMP_RET_KILL_PROCESS);
        for (;;)
            pause();
    }
    EXPECT(ended(child), BY_SIGNAL(SIGSYS));
}

static void nobody_traces(void)
{
    EXPECT(answer(CALL, SECCOMP_RET_TRACE | 77, 0), 0);
    EXPECT_ERROR(make_call(0), ENOSYS);
}

static void logged(void)
{
    long before = make_call(0);
    EXPECT(answer(CALL, SECCOMP_RET_LOG, SECCOMP_FILTER_FLAG_LOG), 0);
    EXPECT(make_call(0), before);
}

static void strictest_wins(void)
{
    static const unsigned actions[] = {SECCOMP_RET_LOG, SECCOMP_RET_TRACE, SECCOMP_RET_ERRNO | 5, SECCOMP_RET_TRAP};
    handle_calls();
    given_back = 123;
    /* Each is stricter than the last one, and the order in which they come is of no meaning. */
    EXPECT(answer(CALL, actions[0], 0), 0);
    EXPECT_TRUE(make_call(0) != -1);
    EXPECT(answer(CALL, actions[1], 0), 0);
    EXPECT_ERROR(make_call(0), ENOSYS);
    EXPECT(answer(CALL, actions[2], 0), 0);
    EXPECT_ERROR(make_call(0), 5);
    EXPECT(answer(CALL, actions[3], 0), 0);
    EXPECT(make_call(0), 123);
    EXPECT(answer(CALL, SECCOMP_RET_ERRNO | 6, 0), 0);
    EXPECT(make_call(0), 123);
    pid_t child = fork();
    if (child == 0) {
        answer(CALL, SECCOMP_RET_KILL_THREAD, 0);
        make_call(0);
        _exit(0);
    }
    EXPECT(ended(child), BY_SIGNAL(SIGSYS));
}

static void latest_of_equals(void)
{
    EXPECT(answer(CALL, SECCOMP_RET_ERRNO | 5, 0), 0);
    EXPECT_ERROR(make_call(0), 5);
    EXPECT(answer(CALL, SECCOMP_RET_ERRNO | 6, 0), 0);
    EXPECT_ERROR(make_call(0), 6);
}

static void arguments_seen(void)
{
    const struct sock_filter code[] = {
        FIELD(nr),
        UNLESS(CALL, 6),
        ARGUMENT(1),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 100, 1, 0),
        ALLOW,
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff),
        BPF_STMT(BPF_ALU | BPF_OR | BPF_K, SECCOMP_RET_ERRNO),
        BPF_STMT(BPF_RET | BPF_A, 0),
        ALLOW,
    };
    EXPECT(install(code, COUNT(code), 0), 0);
    EXPECT_TRUE(make_call(0) != -1);
    EXPECT_ERROR(make_call(100), 100);
    EXPECT_ERROR(make_call(0x1200 + 33), 33);
    EXPECT_ERROR(make_call(-1), 255);
}

static void upper_halves_seen(void)
{
    const struct sock_filter code[] = {
        FIELD(nr),
        UNLESS(CALL, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * 5 + 4),
        UNLESS(0x12345678, 1),
        ANSWER(SECCOMP_RET_ERRNO | 9),
        ALLOW,
    };
    EXPECT(install(code, COUNT(code), 0), 0);
    EXPECT_ERROR(syscall(CALL, PRIO_PROCESS, 0, 0, 0, 0, 0x1234567800000000), 9);
    EXPECT_TRUE(syscall(CALL, PRIO_PROCESS, 0, 0, 0, 0, 0x12345678) != -1);
}

static void machine_seen(void)
{
    const struct sock_filter code[] = {FIELD(arch), UNLESS(AUDIT_ARCH_X86_64, 3), FIELD(nr), UNLESS(CALL, 1),
                                       ANSWER(SECCOMP_RET_ERRNO | 9), ALLOW};
    EXPECT(install(code, COUNT(code), 0), 0);
    EXPECT_ERROR(make_call(0), 9);
}

static void computed(void)
{
    /* (second argument * 3 + 2) xor (first argument << 4), by memory and both registers, is the error. */
    const struct sock_filter code[] = {
        FIELD(nr),
        UNLESS(CALL, 13),
        ARGUMENT(1),
        BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 3),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 2),
        BPF_STMT(BPF_ST, 7),
        ARGUMENT(2),
        BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 4),
        BPF_STMT(BPF_LDX | BPF_MEM, 7),
        BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xfff),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_LD | BPF_IMM, SECCOMP_RET_ERRNO),
        BPF_STMT(BPF_ALU | BPF_OR | BPF_X, 0),
        BPF_STMT(BPF_RET | BPF_A, 0),
        ALLOW,
    };
    EXPECT(install(code, COUNT(code), 0), 0);
    for (int i = 0; i < 20; i++)
        EXPECT_ERROR(syscall(CALL, PRIO_PROCESS, i, i + 1), (i * 3 + 2) ^ (i + 1) << 4);
}

static void calls_of_its_own(void)
{
    /* What the library and a recording need is allowed here by number; the rest is refused. */
    EXPECT(answer(SYS_mmap, SECCOMP_RET_ERRNO | 51, 0), 0);
    EXPECT(answer(SYS_munmap, SECCOMP_RET_ERRNO | 52, 0), 0);
    EXPECT(answer(SYS_mprotect, SECCOMP_RET_ERRNO | 53, 0), 0);
    EXPECT(answer(SYS_rt_sigaction, SECCOMP_RET_ERRNO | 54, 0), 0);
    EXPECT(answer(SYS_rt_sigprocmask, SECCOMP_RET_ERRNO | 55, 0), 0);
    EXPECT(answer(SYS_futex, SECCOMP_RET_ERRNO | 56, 0), 0);
    EXPECT(answer(SYS_execve, SECCOMP_RET_ERRNO | 57, 0), 0);
    EXPECT(answer(SYS_clone, SECCOMP_RET_ERRNO | 58, 0), 0);
    EXPECT(answer(SYS_sigaltstack, SECCOMP_RET_ERRNO | 59, 0), 0);
    EXPECT(answer(SYS_getppid, SECCOMP_RET_ERRNO | 60, 0), 0);
    EXPECT(answer(SYS_prctl, SECCOMP_RET_ERRNO | 61, 0), 0);
    EXPECT_ERROR(syscall(SYS_mmap, 0, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 51);
    EXPECT_ERROR(syscall(SYS_munmap, 0, PAGE), 52);
    EXPECT_ERROR(syscall(SYS_mprotect, 0, 0, 0), 53);
    EXPECT_ERROR(syscall(SYS_rt_sigaction, SIGUSR1, NULL, NULL, 8), 54);
    EXPECT_ERROR(syscall(SYS_rt_sigprocmask, 0, NULL, NULL, 8), 55);
    EXPECT_ERROR(syscall(SYS_futex, 0, 0, 0, 0, 0, 0), 56);
    EXPECT_ERROR(syscall(SYS_execve, "/bin/true", NULL, NULL), 57);
    EXPECT_ERROR(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0), 58);
    EXPECT_ERROR(syscall(SYS_sigaltstack, NULL, NULL), 59);
    EXPECT_ERROR(syscall(SYS_getppid), 60);
    EXPECT_ERROR(syscall(SYS_prctl, PR_GET_SECCOMP), 61);
}

static void inherited(void)
{
    EXPECT(answer(CALL, SECCOMP_RET_ERRNO | 9, 0), 0);
    pid_t child = fork();
    if (child == 0) {
        int is_refused = make_call(0) == -1 && errno == 9;
        _exit(is_refused && prctl(PR_GET_SECCOMP) == 2 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 7 : 8);
    }
    EXPECT(ended(child), 7);
    child = vfork();
    if (child == 0)
        _exit(make_call(0) == -1 && errno == 9 ? 7 : 8);
    EXPECT(ended(child), 7);
}

static void only_after(void)
{
    struct gate gate = make_gate();
    pid_t child = fork();
    if (child == 0) {
        pass_gate(gate);
        _exit(make_call(0) != -1 && prctl(PR_GET_SECCOMP) == 0 ? 7 : 8);
    }
    EXPECT(answer(CALL, SECCOMP_RET_ERRNO | 9, 0), 0);
    open_gate(gate);
    EXPECT(ended(child), 7);
}

static void kept_by_new_programs(void)
{
    EXPECT(answer(CALL, SECCOMP_RET_ERRNO | 9, 0), 0);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "again", "--again", NULL);
        _exit(99);
    }
    EXPECT(ended(child), 42);
}

static void program_forbidden(void)
{
    pid_t child = fork();
    if (child == 0) {
        answer(SYS_execve, SECCOMP_RET_KILL_PROCESS, 0);
        execl("/bin/true", "true", NULL);
        _exit(99);
    }
    EXPECT(ended(child), BY_SIGNAL(SIGSYS));
    child = fork();
    if (child == 0) {
        answer(SYS_execve, SECCOMP_RET_ERRNO | 9, 0);
        execl("/bin/true", "true", NULL);
        _exit(errno);
    }
    EXPECT(ended(child), 9);
}

static pthread_barrier_t both;

static void *try_later(void *result)
{
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    *(long *)result = make_call(0) == -1 ? errno : 0;
    return NULL;
}

static long in_another_thread(unsigned flags, long *installed)
{
    pthread_t thread;
    long result = -1;
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, try_later, &result);
    pthread_barrier_wait(&both);
    *installed = answer(CALL, SECCOMP_RET_ERRNO | 9, flags);
    pthread_barrier_wait(&both);
    pthread_join(thread, NULL);
    return result;
}

static void of_one_thread(void)
{
    long installed;
    EXPECT(in_another_thread(0, &installed), 0);
    EXPECT(installed, 0);
    EXPECT_ERROR(make_call(0), 9);
}

static void of_all_threads(void)
{
    long installed;
    EXPECT(in_another_thread(SECCOMP_FILTER_FLAG_TSYNC, &installed), 9);
    EXPECT(installed, 0);
}

static void *diverge(void *id)
{
    answer(SYS_getuid, SECCOMP_RET_ERRNO | 9, 0);
    *(pid_t *)id = gettid();
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    return NULL;
}

static void threads_that_diverged(void)
{
    pthread_t thread;
    pid_t id = 0;
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, diverge, &id);
    pthread_barrier_wait(&both);
    EXPECT(answer(CALL, SECCOMP_RET_ERRNO | 9, SECCOMP_FILTER_FLAG_TSYNC), id);
    EXPECT_TRUE(make_call(0) != -1);
    const unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    EXPECT_ERROR(answer(CALL, SECCOMP_RET_ERRNO | 9, flags), ESRCH);
    pthread_barrier_wait(&both);
    pthread_join(thread, NULL);
    EXPECT(answer(CALL, SECCOMP_RET_ERRNO | 9, SECCOMP_FILTER_FLAG_TSYNC), 0);
    EXPECT_ERROR(make_call(0), 9);
}

static int send_descriptor(int socket, int descriptor)
{
    char byte = 'x', room[CMSG_SPACE(sizeof descriptor)] = {0};
    struct iovec content = {&byte, 1};
    struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    return sendmsg(socket, &message, 0) == 1;
}

static int receive_descriptor(int socket)
{
    char byte, room[CMSG_SPACE(sizeof(int))];
    struct iovec content = {&byte, 1};
    struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    int descriptor = -1;
    if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof descriptor);
    return descriptor;
}

/* A child that asks whoever has the descriptor for each such call; `run` is what it does then. */
static pid_t asking_child(long call, int *listener, int (*run)(void))
{
    int ends[2];
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_t child = fork();
    if (child == 0) {
        int descriptor = (int)answer(call, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
        if (descriptor < 0 || !send_descriptor(ends[0], descriptor))
            _exit(98);
        close(descriptor);
        close(ends[0]);
        close(ends[1]);
        _exit(run());
    }
    close(ends[0]);
    *listener = receive_descriptor(ends[1]);
    close(ends[1]);
    EXPECT_TRUE(*listener >= 0);
    return child;
}

static int ask_three_times(void)
{
    long first = make_call(10);
    int is_refused = make_call(20) == -1 && errno == 44;
    long made = make_call(0);
    return first == 1234 && is_refused && made != -1 ? 7 : 8;
}

static void somebody_asked(void)
{
    int listener;
    pid_t child = asking_child(CALL, &listener, ask_three_times);
    for (int i = 0; i < 3; i++) {
        struct seccomp_notif question = {0};
        EXPECT(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question), 0);
        EXPECT(question.pid, child);
        EXPECT(question.data.nr, CALL);
        EXPECT(question.data.arch, AUDIT_ARCH_X86_64);
        EXPECT(question.data.args[1], i < 2 ? 10 * (i + 1) : 0);
        EXPECT(ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &question.id), 0);
        struct seccomp_notif_resp given = {.id = question.id};
        if (i == 0)
            given.val = 1234;
        else if (i == 1)
            given.error = -44;
        else
            given.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        EXPECT(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &given), 0);
        given.id = ~question.id;
        EXPECT_ERROR(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &given), ENOENT);
        EXPECT_ERROR(ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &given.id), ENOENT);
    }
    EXPECT(ended(child), 7);
    struct pollfd polled = {listener, POLLIN, 0};
    EXPECT(poll(&polled, 1, -1), 1);
    EXPECT(polled.revents & POLLHUP, POLLHUP);
}

static int open_something(void)
{
    char content[8] = {0};
    int descriptor = (int)syscall(SYS_openat, AT_FDCWD, "/no/such/file", O_RDONLY);
    return descriptor >= 0 && read(descriptor, content, 5) == 5 && strcmp(content, "given") == 0 ? 7 : 8;
}

static void descriptor_given(void)
{
    int listener, file = memfd_create("given", 0);
    EXPECT(write(file, "given", 5), 5);
    EXPECT(lseek(file, 0, SEEK_SET), 0);
    pid_t child = asking_child(SYS_openat, &listener, open_something);
    struct seccomp_notif question = {0};
    EXPECT(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question), 0);
    char path[16] = {0};
    struct iovec here = {path, sizeof path - 1}, there = {(void *)question.data.args[1], sizeof path - 1};
    EXPECT_TRUE(process_vm_readv(child, &here, 1, &there, 1, 0) > 0);
    EXPECT(strcmp(path, "/no/such/file"), 0);
    struct seccomp_notif_addfd added = {.id = question.id, .srcfd = (unsigned)file, .flags = SECCOMP_ADDFD_FLAG_SEND};
    EXPECT_TRUE(ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &added) >= 0);
    EXPECT(ended(child), 7);
}

static int ask_once(void)
{
    return make_call(0) == -1 && errno == ENOSYS ? 7 : 8;
}

static void nobody_to_ask(void)
{
    int listener;
    pid_t child = asking_child(CALL, &listener, ask_once);
    struct seccomp_notif question = {0};
    EXPECT(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question), 0);
    close(listener);
    EXPECT(ended(child), 7);
}

static void asking_child_killed(void)
{
    int listener;
    pid_t child = asking_child(CALL, &listener, ask_once);
    struct seccomp_notif question = {0}, dirty = {.pid = 1};
    EXPECT_ERROR(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &dirty), EINVAL);
    EXPECT(ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question), 0);
    kill(child, SIGKILL);
    EXPECT(ended(child), BY_SIGNAL(SIGKILL));
    struct seccomp_notif_resp given = {.id = question.id};
    EXPECT_ERROR(ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &given), ENOENT);
}

static void one_listener(void)
{
    EXPECT_TRUE(answer(CALL, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER) >= 0);
    EXPECT_ERROR(answer(SYS_getuid, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER), EBUSY);
}

static void no_listener(void)
{
    EXPECT(answer(CALL, SECCOMP_RET_USER_NOTIF, 0), 0);
    EXPECT_ERROR(make_call(0), ENOSYS);
}

static void strictly_allowed(void)
{
    struct gate gate = make_gate();
    char byte = 0;
    pid_t child = fork();
    if (child == 0) {
        if (seccomp(SECCOMP_SET_MODE_STRICT, 0, NULL) != 0)
            _exit(99);
        ssize_t n_written = write(gate.ends[1], "y", 1);
        syscall(SYS_exit, n_written == 1 ? 7 : 8);
    }
    EXPECT(ended(child), 7);
    EXPECT(read(gate.ends[0], &byte, 1), 1);
    EXPECT(byte, 'y');
}

static void strictly_forbidden(void)
{
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
            if (i == 0)
                syscall(SYS_getpid);
            else if (i == 1)
                _exit(0); /* All threads' end is another call than one's. */
            else
                syscall(SYS_prctl, PR_GET_SECCOMP);
            syscall(SYS_exit, 0);
        }
        EXPECT(ended(child), BY_SIGNAL(SIGKILL));
    }
}

static void longest_filter(void)
{
    static struct sock_filter code[BPF_MAXINSNS];
    const struct sock_filter nothing = BPF_STMT(BPF_LD | BPF_IMM, 0);
    const struct sock_filter last[] = {FIELD(nr), UNLESS(CALL, 1), ANSWER(SECCOMP_RET_ERRNO | 9), ALLOW};
    for (size_t i = 0; i < COUNT(code); i++)
        code[i] = nothing;
    memcpy(code + COUNT(code) - COUNT(last), last, sizeof last);
    EXPECT(install(code, COUNT(code), 0), 0);
    EXPECT_ERROR(make_call(0), 9);
    EXPECT_TRUE(syscall(SYS_getuid) != -1);
}

static void interrupting_signals(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO, .sa_sigaction = note_call};
    sigaction(SIGALRM, &action, NULL);
    EXPECT(answer(CALL, SECCOMP_RET_ERRNO | 9, 0), 0);
    ualarm(500, 500);
    while (n_told < 20)
        EXPECT_ERROR(make_call(0), 9);
    ualarm(0, 0);
}

static const struct one_case cases[] = {
    CASE(bad_operations),
    CASE(all_actions_there),
    CASE(bad_programs),
    CASE(bad_instructions),
    CASE(privileges_needed),
    CASE(mode_told),
    CASE(errors_given),
    CASE(trapped),
    CASE(trapped_and_blocked),
    CASE(trapped_in_a_handler),
    CASE(process_killed),
    CASE(last_thread_killed),
    CASE(one_thread_killed),
    CASE(nobody_traces),
    CASE(logged),
    CASE(strictest_wins),
    CASE(latest_of_equals),
    CASE(arguments_seen),
    CASE(upper_halves_seen),
    CASE(machine_seen),
    CASE(computed),
    CASE(calls_of_its_own),
    CASE(inherited),
    CASE(only_after),
    CASE(kept_by_new_programs),
    CASE(program_forbidden),
    CASE(of_one_thread),
    CASE(of_all_threads),
    CASE(threads_that_diverged),
    CASE(somebody_asked),
    CASE(descriptor_given),
    CASE(nobody_to_ask),
    CASE(asking_child_killed),
    CASE(one_listener),
    CASE(no_listener),
    CASE(strictly_allowed),
    CASE(strictly_forbidden),
    CASE(longest_filter),
    CASE(interrupting_signals),
};

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "--again") == 0)
        return make_call(0) == -1 && errno == 9 && prctl(PR_GET_SECCOMP) == 2 ? 42 : 43;
    return RUN_CASES(cases, arguments + 1);
}
