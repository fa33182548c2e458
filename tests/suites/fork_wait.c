/* fork, vfork, clone, clone3 and the calls that wait: statuses, options, errors, what children inherit and what they do not. */
#include "cases.h"
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

static pid_t start_exiting(int status)
{
    pid_t child = fork();
    if (child == 0)
        _exit(status);
    return child;
}

static pid_t start_waiting(void)
{
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    return child;
}

static void end_child(pid_t child)
{
    EXPECT(kill(child, SIGKILL), 0);
    EXPECT(ended(child), BY_SIGNAL(SIGKILL));
}

static void fork_pids(void)
{
    volatile int *cells = shared_ints();
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        cells[0] = getpid();
        cells[1] = getppid();
        cells[2] = gettid();
        _exit(0);
    }
    EXPECT(ended(child), 0);
    EXPECT(cells[0], child);
    EXPECT(cells[1], parent);
    EXPECT(cells[2], child);
}

static void exit_statuses(void)
{
    static const int given[] = {0, 1, 2, 126, 127, 128, 255, 256, 511, -1};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        EXPECT(ended(start_exiting(given[i])), given[i] & 255);
}

static void signal_statuses(void)
{
    const int signals[] = {SIGTERM, SIGKILL, SIGUSR1, SIGALRM, SIGHUP, SIGPIPE, SIGRTMIN + 1};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        pid_t child = start_waiting();
        kill(child, signals[i]);
        EXPECT(ended(child), BY_SIGNAL(signals[i]));
    }
}

static void no_children(void)
{
    siginfo_t info;
    EXPECT_ERROR(wait(NULL), ECHILD);
    EXPECT_ERROR(waitpid(-1, NULL, WNOHANG), ECHILD);
    EXPECT_ERROR(waitid(P_ALL, 0, &info, WEXITED), ECHILD);
    EXPECT_ERROR(waitid(P_ALL, 0, &info, WEXITED | WNOHANG), ECHILD);
}

static void not_a_child(void)
{
    EXPECT_ERROR(waitpid(getppid(), NULL, 0), ECHILD);
    EXPECT_ERROR(waitpid(getpid(), NULL, 0), ECHILD);
    EXPECT_ERROR(waitpid(INT_MAX, NULL, 0), ECHILD);
    EXPECT_ERROR(waitpid(-INT_MAX, NULL, 0), ECHILD);
    EXPECT_ERROR(waitpid(INT_MIN, NULL, 0), ESRCH);
}

static void bad_options(void)
{
    siginfo_t info;
    EXPECT_ERROR(waitpid(-1, NULL, 0x1000), EINVAL);
    EXPECT_ERROR(waitpid(-1, NULL, WEXITED), EINVAL);
    EXPECT_ERROR(waitpid(-1, NULL, WNOWAIT), EINVAL);
    EXPECT_ERROR(waitid(P_ALL, 0, &info, 0), EINVAL);
    EXPECT_ERROR(waitid(P_ALL, 0, &info, WNOHANG), EINVAL);
    EXPECT_ERROR(waitid(P_ALL, 0, &info, WEXITED | 0x1000), EINVAL);
}

static void bad_ids(void)
{
    siginfo_t info;
    EXPECT_ERROR(waitid((idtype_t)77, 0, &info, WEXITED), EINVAL);
    EXPECT_ERROR(waitid(P_PID, 0, &info, WEXITED), EINVAL);
    EXPECT_ERROR(waitid(P_PID, (id_t)-1, &info, WEXITED), EINVAL);
    EXPECT_ERROR(waitid(P_PGID, (id_t)-1, &info, WEXITED), EINVAL);
    EXPECT_ERROR(waitid(P_PIDFD, (id_t)-1, &info, WEXITED), EINVAL);
    EXPECT_ERROR(waitid(P_PIDFD, 900, &info, WEXITED), EBADF);
    EXPECT_ERROR(waitid(P_PIDFD, 1, &info, WEXITED), EBADF);
}

static void bad_status_address(void)
{
    pid_t child = start_exiting(3);
    EXPECT_ERROR(syscall(SYS_wait4, child, NOWHERE, 0, NULL), EFAULT);
    EXPECT_ERROR(waitpid(child, NULL, 0), ECHILD);
    child = start_exiting(3);
    EXPECT_ERROR(syscall(SYS_waitid, P_PID, child, NOT_CANONICAL, WEXITED, NULL), EFAULT);
    EXPECT_ERROR(waitpid(child, NULL, 0), ECHILD);
}

static void bad_usage_address(void)
{
    int status = 0;
    pid_t child = start_exiting(5);
    EXPECT_ERROR(syscall(SYS_wait4, child, &status, 0, NOWHERE), EFAULT);
    EXPECT_ERROR(waitpid(child, NULL, 0), ECHILD);
}

static void waitid_without_info(void)
{
    pid_t child = start_exiting(4);
    EXPECT(waitid(P_PID, (id_t)child, NULL, WEXITED), 0);
    EXPECT_ERROR(waitpid(child, NULL, 0), ECHILD);
}

static void nothing_to_report(void)
{
    siginfo_t info;
    pid_t child = start_waiting();
    memset(&info, 0x55, sizeof info);
    EXPECT(waitpid(child, NULL, WNOHANG), 0);
    EXPECT(waitpid(-1, NULL, WNOHANG | WUNTRACED | WCONTINUED), 0);
    EXPECT(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG), 0);
    EXPECT(info.si_pid, 0);
    EXPECT(info.si_signo, 0);
    end_child(child);
}

static void looked_at_first(void)
{
    siginfo_t info;
    pid_t child = start_exiting(77);
    for (int i = 0; i < 3; i++) {
        memset(&info, 0, sizeof info);
        EXPECT(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
        EXPECT(info.si_pid, child);
        EXPECT(info.si_status, 77);
    }
    EXPECT(ended(child), 77);
}

static void info_of_exit(void)
{
    siginfo_t info = {0};
    pid_t child = start_exiting(300);
    EXPECT(waitid(P_PID, (id_t)child, &info, WEXITED), 0);
    EXPECT(info.si_signo, SIGCHLD);
    EXPECT(info.si_code, CLD_EXITED);
    EXPECT(info.si_pid, child);
    EXPECT(info.si_uid, getuid());
    EXPECT(info.si_status, 300 & 255);
}

static void info_of_kill(void)
{
    siginfo_t info = {0};
    pid_t child = start_waiting();
    kill(child, SIGUSR2);
    EXPECT(waitid(P_ALL, 0, &info, WEXITED), 0);
    EXPECT(info.si_code, CLD_KILLED);
    EXPECT(info.si_status, SIGUSR2);
    EXPECT(info.si_pid, child);
}

static void stopped_and_continued(void)
{
    int status;
    pid_t child = start_waiting();
    kill(child, SIGSTOP);
    EXPECT(waitpid(child, &status, WUNTRACED), child);
    EXPECT_TRUE(WIFSTOPPED(status));
    EXPECT(WSTOPSIG(status), SIGSTOP);
    EXPECT(waitpid(child, &status, WUNTRACED | WNOHANG), 0);
    kill(child, SIGCONT);
    EXPECT(waitpid(child, &status, WCONTINUED), child);
    EXPECT_TRUE(WIFCONTINUED(status));
    end_child(child);
}

static void info_of_stop(void)
{
    siginfo_t info = {0};
    pid_t child = start_waiting();
    kill(child, SIGTSTP);
    EXPECT(waitid(P_PID, (id_t)child, &info, WSTOPPED), 0);
    EXPECT(info.si_code, CLD_STOPPED);
    EXPECT(info.si_status, SIGTSTP);
    kill(child, SIGCONT);
    EXPECT(waitid(P_PID, (id_t)child, &info, WCONTINUED), 0);
    EXPECT(info.si_code, CLD_CONTINUED);
    EXPECT(info.si_status, SIGCONT);
    end_child(child);
}

static void killed_while_stopped(void)
{
    int status;
    pid_t child = start_waiting();
    kill(child, SIGSTOP);
    EXPECT(waitpid(child, &status, WUNTRACED), child);
    end_child(child);
}

static void by_group(void)
{
    pid_t child = start_waiting();
    EXPECT(setpgid(child, child), 0);
    EXPECT(getpgid(child), child);
    EXPECT_ERROR(waitpid(0, NULL, WNOHANG), ECHILD);
    EXPECT(waitpid(-child, NULL, WNOHANG), 0);
    kill(-child, SIGTERM);
    EXPECT(waitpid(-child, NULL, 0), child);
}

static void groups_and_sessions(void)
{
    EXPECT_ERROR(setpgid(-1, 0), EINVAL);
    EXPECT_ERROR(setpgid(0, -1), EINVAL);
    EXPECT_ERROR(setpgid(getppid(), 0), ESRCH);
    pid_t child = fork();
    if (child == 0) {
        int is_right = setsid() == getpid() && getsid(0) == getpid() && getpgrp() == getpid();
        is_right &= setsid() == -1 && errno == EPERM;
        is_right &= setpgid(0, 0) == -1 && errno == EPERM;
        _exit(is_right);
    }
    EXPECT(ended(child), 1);
}

static void children_ignored(void)
{
    signal(SIGCHLD, SIG_IGN);
    for (int i = 0; i < 4; i++)
        start_exiting(i);
    EXPECT_ERROR(wait(NULL), ECHILD);
}

static void children_not_kept(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
    sigaction(SIGCHLD, &action, NULL);
    pid_t child = start_exiting(1);
    EXPECT_ERROR(waitpid(child, NULL, 0), ECHILD);
}

static volatile sig_atomic_t n_handled, told_pid, told_status, told_code;

static void note_child(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number, (void)context;
    n_handled++;
    told_pid = info->si_pid;
    told_status = info->si_status;
    told_code = info->si_code;
}

static void child_signal(void)
{
    sigset_t blocked, before;
    struct sigaction action = {.sa_sigaction = note_child, .sa_flags = SA_SIGINFO};
    sigaction(SIGCHLD, &action, NULL);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    pid_t child = start_exiting(42);
    while (n_handled == 0)
        sigsuspend(&before);
    EXPECT(told_pid, child);
    EXPECT(told_status, 42);
    EXPECT(told_code, CLD_EXITED);
    EXPECT(ended(child), 42);
}

static void note(int signal_number)
{
    (void)signal_number;
    n_handled++;
}

/* The child signals until it is told that the wait was left, or that the handler ran: no wait is missed. */
static void wait_interrupted(void)
{
    struct sigaction action = {.sa_handler = note};
    volatile int *cells = shared_ints();
    sigaction(SIGUSR1, &action, NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        while (!cells[0]) {
            kill(parent, SIGUSR1);
            usleep(1000);
        }
        _exit(0);
    }
    EXPECT_ERROR(wait(NULL), EINTR);
    cells[0] = 1;
    EXPECT(ended(child), 0);
}

static void wait_restarted(void)
{
    struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        for (int i = 0; i < 20; i++) {
            kill(parent, SIGUSR1);
            usleep(500);
        }
        _exit(6);
    }
    int status;
    EXPECT(wait(&status), child);
    EXPECT(WEXITSTATUS(status), 6);
    EXPECT_TRUE(n_handled > 0);
}

static void memory_apart(void)
{
    static volatile int private_cell = 1;
    volatile int *cells = shared_ints();
    pid_t child = fork();
    if (child == 0) {
        private_cell = 2;
        cells[0] = 3;
        _exit(private_cell);
    }
    EXPECT(ended(child), 2);
    EXPECT(private_cell, 1);
    EXPECT(cells[0], 3);
}

static void descriptors_shared(void)
{
    int file = memfd_create("offsets", 0);
    pid_t child = fork();
    if (child == 0) {
        close(100);
        _exit(write(file, "abcde", 5) != 5 || close(file) != 0);
    }
    EXPECT(ended(child), 0);
    EXPECT(lseek(file, 0, SEEK_CUR), 5);
    EXPECT(close(file), 0);
}

static void descriptor_table_shared(void)
{
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
    if (child == 0)
        _exit(dup2(1, 77) != 77);
    EXPECT(ended(child), 0);
    EXPECT_TRUE(fcntl(77, F_GETFD) >= 0);
    EXPECT(close(77), 0);
}

static void working_folder_shared(void)
{
    char name[PATH_MAX];
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_FS | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        umask(0123);
        _exit(chdir("/proc") != 0);
    }
    EXPECT(ended(child), 0);
    EXPECT_TRUE(getcwd(name, sizeof name) && strcmp(name, "/proc") == 0);
    EXPECT(umask(022), 0123);
}

static void vfork_shares_memory(void)
{
    static volatile int cell = 1;
    pid_t child = vfork();
    if (child == 0) {
        cell = 9;
        _exit(8);
    }
    EXPECT(cell, 9);
    EXPECT(ended(child), 8);
}

static void vfork_killed(void)
{
    pid_t child = vfork();
    if (child == 0) {
        kill(getpid(), SIGKILL);
        _exit(0);
    }
    EXPECT(ended(child), BY_SIGNAL(SIGKILL));
}

static void signals_inherited(void)
{
    sigset_t blocked, waiting;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigaddset(&blocked, SIGUSR2);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGHUP, SIG_IGN);
    raise(SIGUSR1);
    pid_t child = fork();
    if (child == 0) {
        sigset_t mask;
        struct sigaction action;
        sigpending(&waiting);
        sigprocmask(SIG_BLOCK, NULL, &mask);
        sigaction(SIGHUP, NULL, &action);
        _exit(sigismember(&waiting, SIGUSR1) | !sigismember(&mask, SIGUSR1) << 1 | !sigismember(&mask, SIGUSR2) << 2 |
              (action.sa_handler != SIG_IGN) << 3);
    }
    EXPECT(ended(child), 0);
    sigpending(&waiting);
    EXPECT(sigismember(&waiting, SIGUSR1), 1);
}

static void timers_not_inherited(void)
{
    struct itimerval long_time = {.it_value = {.tv_sec = 1000}}, left;
    setitimer(ITIMER_VIRTUAL, &long_time, NULL);
    pid_t child = fork();
    if (child == 0) {
        getitimer(ITIMER_VIRTUAL, &left);
        _exit((alarm(0) != 0) | (left.it_value.tv_sec != 0) << 1);
    }
    EXPECT(ended(child), 0);
    getitimer(ITIMER_VIRTUAL, &left);
    EXPECT_TRUE(left.it_value.tv_sec > 900);
}

static void limits_inherited(void)
{
    struct rlimit limit = {33, 44};
    EXPECT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    pid_t child = fork();
    if (child == 0) {
        getrlimit(RLIMIT_NOFILE, &limit);
        _exit(limit.rlim_cur == 33 && limit.rlim_max == 44 && dup2(1, 33) == -1 && errno == EBADF);
    }
    EXPECT(ended(child), 1);
}

static void clone_flags_refused(void)
{
    EXPECT_ERROR(syscall(SYS_clone, CLONE_SIGHAND | SIGCHLD, 0, 0, 0, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_clone, CLONE_THREAD | CLONE_VM, 0, 0, 0, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_clone, CLONE_THREAD | SIGCHLD, 0, 0, 0, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_clone, CLONE_FS | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_clone, CLONE_NEWUSER | CLONE_FS | SIGCHLD, 0, 0, 0, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_clone, CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, 0, 0, 0, 0), EINVAL);
    EXPECT_ERROR(wait(NULL), ECHILD);
}

static void end_unsignalled(void)
{
    pid_t child = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
    if (child == 0)
        _exit(21);
    int status;
    EXPECT_ERROR(waitpid(child, &status, 0), ECHILD);
    EXPECT(waitpid(child, &status, __WCLONE), child);
    EXPECT(WEXITSTATUS(status), 21);
    EXPECT_ERROR(waitpid(-1, &status, __WALL), ECHILD);
}

static void end_signalled_otherwise(void)
{
    signal(SIGUSR1, note);
    pid_t child = (pid_t)syscall(SYS_clone, SIGUSR1, 0, 0, 0, 0);
    if (child == 0)
        _exit(22);
    int status;
    pid_t got;
    do
        got = waitpid(child, &status, __WALL);
    while (got < 0 && errno == EINTR);
    EXPECT(got, child);
    EXPECT(n_handled, 1);
}

static void clone_writes_ids(void)
{
    volatile int *cells = shared_ints();
    static int parent_cell;
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | SIGCHLD, 0, &parent_cell, &cells[0], 0);
    if (child == 0)
        _exit(cells[0] != getpid());
    EXPECT(parent_cell, child);
    EXPECT(ended(child), 0);
    EXPECT(cells[0], child);
}

static void clone_bad_id_address(void)
{
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, 0, 0, NOWHERE, 0);
    if (child == 0)
        _exit(17);
    EXPECT(ended(child), 17);
}

static void descriptor_of_process(void)
{
    int descriptor = -1;
    siginfo_t info = {0};
    pid_t child = (pid_t)syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, &descriptor, 0, 0);
    if (child == 0)
        for (;;)
            pause();
    struct pollfd polled = {descriptor, POLLIN, 0};
    EXPECT(fcntl(descriptor, F_GETFD), FD_CLOEXEC);
    EXPECT(poll(&polled, 1, 0), 0);
    EXPECT(syscall(SYS_pidfd_send_signal, descriptor, 0, NULL, 0), 0);
    EXPECT(syscall(SYS_pidfd_send_signal, descriptor, SIGTERM, NULL, 0), 0);
    EXPECT(poll(&polled, 1, -1), 1);
    EXPECT(waitid(P_PIDFD, (id_t)descriptor, &info, WEXITED), 0);
    EXPECT(info.si_pid, child);
    EXPECT(info.si_status, SIGTERM);
    EXPECT_ERROR(syscall(SYS_pidfd_send_signal, descriptor, SIGTERM, NULL, 0), ESRCH);
    EXPECT_ERROR(waitid(P_PIDFD, (id_t)descriptor, &info, WEXITED), ECHILD);
}

static void descriptor_errors(void)
{
    EXPECT_ERROR(syscall(SYS_pidfd_open, -1, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_pidfd_open, 0, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_pidfd_open, getpid(), 0x40000000), EINVAL);
    EXPECT_ERROR(syscall(SYS_pidfd_open, INT_MAX, 0), ESRCH);
    EXPECT_ERROR(syscall(SYS_pidfd_send_signal, 1, 0, NULL, 0), EBADF);
    EXPECT_ERROR(syscall(SYS_pidfd_getfd, 1, 0, 0), EBADF);
}

static void clone3_sizes(void)
{
    static struct {
        struct clone_args arguments;
        long behind[4];
    } given;
    given.arguments.exit_signal = SIGCHLD;
    EXPECT_ERROR(syscall(SYS_clone3, &given, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_clone3, &given, 63), EINVAL);
    EXPECT_ERROR(syscall(SYS_clone3, &given, PAGE + 1), E2BIG);
    EXPECT_ERROR(syscall(SYS_clone3, NOWHERE, sizeof given.arguments), EFAULT);
    given.behind[2] = 1;
    EXPECT_ERROR(syscall(SYS_clone3, &given, sizeof given), E2BIG);
    given.behind[2] = 0;
    pid_t child = (pid_t)syscall(SYS_clone3, &given, sizeof given);
    if (child == 0)
        _exit(31);
    EXPECT(ended(child), 31);
}

static void clone3_refused(void)
{
    struct clone_args arguments = {.exit_signal = 65};
    EXPECT_ERROR(syscall(SYS_clone3, &arguments, sizeof arguments), EINVAL);
    arguments = (struct clone_args){.exit_signal = SIGCHLD, .flags = 255};
    EXPECT_ERROR(syscall(SYS_clone3, &arguments, sizeof arguments), EINVAL);
    arguments = (struct clone_args){.exit_signal = SIGCHLD, .stack = 4096};
    EXPECT_ERROR(syscall(SYS_clone3, &arguments, sizeof arguments), EINVAL);
    arguments = (struct clone_args){.exit_signal = SIGCHLD, .stack_size = 4096};
    EXPECT_ERROR(syscall(SYS_clone3, &arguments, sizeof arguments), EINVAL);
    arguments = (struct clone_args){.exit_signal = SIGCHLD, .flags = CLONE_PARENT};
    EXPECT_ERROR(syscall(SYS_clone3, &arguments, sizeof arguments), EINVAL);
    arguments = (struct clone_args){.exit_signal = SIGCHLD, .set_tid = 8};
    EXPECT_ERROR(syscall(SYS_clone3, &arguments, sizeof arguments), EINVAL);
    EXPECT_ERROR(wait(NULL), ECHILD);
}

static void orphan_adopted(void)
{
    volatile int *cells = shared_ints();
    struct gate gate = make_gate();
    EXPECT(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    pid_t adopter = getpid(), child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            pass_gate(gate);
            _exit(getppid() == adopter ? 12 : 13);
        }
        cells[0] = grandchild;
        _exit(0);
    }
    EXPECT(ended(child), 0);
    open_gate(gate);
    EXPECT(ended(cells[0]), 12);
}

static void sibling(void)
{
    volatile int *cells = shared_ints();
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        pid_t made = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if (made == 0)
            _exit(getppid() == parent ? 14 : 15);
        cells[0] = made;
        _exit(waitpid(made, NULL, 0) == -1 && errno == ECHILD);
    }
    EXPECT(ended(child), 1);
    EXPECT(ended(cells[0]), 14);
}

static void death_of_parent(void)
{
    int number = -1;
    EXPECT_ERROR(prctl(PR_SET_PDEATHSIG, 65, 0, 0, 0), EINVAL);
    EXPECT(prctl(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0), 0);
    EXPECT(prctl(PR_GET_PDEATHSIG, &number, 0, 0, 0), 0);
    EXPECT(number, SIGUSR1);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_GET_PDEATHSIG, &number, 0, 0, 0);
        _exit(number);
    }
    EXPECT(ended(child), 0);
}

static void death_signalled(void)
{
    volatile int *cells = shared_ints();
    struct gate ready = make_gate();
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            prctl(PR_SET_PDEATHSIG, SIGUSR2, 0, 0, 0);
            open_gate(ready);
            for (;;)
                pause();
        }
        cells[0] = grandchild;
        pass_gate(ready);
        _exit(0);
    }
    EXPECT(ended(child), 0);
    EXPECT(ended(cells[0]), BY_SIGNAL(SIGUSR2));
}

static void usage_of_children(void)
{
    struct rusage usage = {0}, all = {0};
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct rusage own;
        do
            getrusage(RUSAGE_SELF, &own);
        while (own.ru_utime.tv_usec + own.ru_stime.tv_usec < 5000);
        _exit(0);
    }
    EXPECT(wait4(child, &status, 0, &usage), child);
    EXPECT_TRUE(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec >= 4000);
    getrusage(RUSAGE_CHILDREN, &all);
    EXPECT_TRUE(all.ru_maxrss >= usage.ru_maxrss);
    EXPECT_ERROR(getrusage(7, &all), EINVAL);
}

static void many_children(void)
{
    enum { N = 40 };
    pid_t children[N];
    long sum = 0;
    for (int i = 0; i < N; i++)
        children[i] = start_exiting(i);
    for (int i = N - 1; i >= 0; i--)
        sum += ended(children[i]);
    EXPECT(sum, N * (N - 1) / 2);
    EXPECT_ERROR(wait(NULL), ECHILD);
}

static void *wait_for_any(void *child)
{
    pid_t expected = *(pid_t *)child;
    int is_refused = waitpid(expected, NULL, __WNOTHREAD | WNOHANG) == -1 && errno == ECHILD;
    return (void *)(is_refused ? ended(expected) : -2L);
}

static void waited_by_thread(void)
{
    pthread_t thread;
    void *result;
    pid_t child = start_exiting(55);
    pthread_create(&thread, NULL, wait_for_any, &child);
    pthread_join(thread, &result);
    EXPECT((long)result, 55);
    EXPECT_ERROR(wait(NULL), ECHILD);
}

static void *fork_in_thread(void *unused)
{
    (void)unused;
    pid_t child = fork();
    if (child == 0)
        _exit(gettid() == getpid() ? 66 : 67);
    return (void *)(long)child;
}

static void forked_by_thread(void)
{
    pthread_t thread;
    void *child;
    pthread_create(&thread, NULL, fork_in_thread, NULL);
    pthread_join(thread, &child);
    EXPECT(ended((pid_t)(long)child), 66);
}

static const struct one_case cases[] = {
    CASE(fork_pids),
    CASE(exit_statuses),
    CASE(signal_statuses),
    CASE(no_children),
    CASE(not_a_child),
    CASE(bad_options),
    CASE(bad_ids),
    CASE(bad_status_address),
    CASE(bad_usage_address),
    CASE(waitid_without_info),
    CASE(nothing_to_report),
    CASE(looked_at_first),
    CASE(info_of_exit),
    CASE(info_of_kill),
    CASE(stopped_and_continued),
    CASE(info_of_stop),
    CASE(killed_while_stopped),
    CASE(by_group),
    CASE(groups_and_sessions),
    CASE(children_ignored),
    CASE(children_not_kept),
    CASE(child_signal),
    CASE(wait_interrupted),
    CASE(wait_restarted),
    CASE(memory_apart),
    CASE(descriptors_shared),
    CASE(descriptor_table_shared),
    CASE(working_folder_shared),
    CASE(vfork_shares_memory),
    CASE(vfork_killed),
    CASE(signals_inherited),
    CASE(timers_not_inherited),
    CASE(limits_inherited),
    CASE(clone_flags_refused),
    CASE(end_unsignalled),
    CASE(end_signalled_otherwise),
    CASE(clone_writes_ids),
    CASE(clone_bad_id_address),
    CASE(descriptor_of_process),
    CASE(descriptor_errors),
    CASE(clone3_sizes),
    CASE(clone3_refused),
    CASE(orphan_adopted),
    CASE(sibling),
    CASE(death_of_parent),
    CASE(death_signalled),
    CASE(usage_of_children),
    CASE(many_children),
    CASE(waited_by_thread),
    CASE(forked_by_thread),
};

int main(int count, char **arguments)
{
    (void)count;
    return RUN_CASES(cases, arguments + 1);
}
