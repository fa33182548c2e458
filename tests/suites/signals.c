/* Signals: rt_sigaction, masks, sending, waiting, queues, alternate stacks, descriptors: effects, edge values, errors. */
#include "cases.h"
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/ucontext.h>
#include <time.h>

#define KERNEL_SET_BYTES 8

static volatile sig_atomic_t n_handled, order[100];
static siginfo_t told;

static void note(int number)
{
    order[n_handled++ % 100] = number;
}

static void note_info(int number, siginfo_t *info, void *context)
{
    (void)context;
    told = *info;
    note(number);
}

static void handle(int number, int flags)
{
    struct sigaction action = {.sa_flags = flags | SA_SIGINFO, .sa_sigaction = note_info};
    EXPECT(sigaction(number, &action, NULL), 0);
}

static sigset_t set_of(int first, int second)
{
    sigset_t set;
    sigemptyset(&set);
    if (first)
        sigaddset(&set, first);
    if (second)
        sigaddset(&set, second);
    return set;
}

static void block(int first, int second)
{
    sigset_t set = set_of(first, second);
    EXPECT(sigprocmask(SIG_BLOCK, &set, NULL), 0);
}

static void unblock(int first, int second)
{
    sigset_t set = set_of(first, second);
    EXPECT(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
}

static int is_waiting(int number)
{
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, number);
}

static void action_numbers(void)
{
    struct sigaction action = {.sa_handler = SIG_IGN};
    static const int refused[] = {0, -1, SIGKILL, SIGSTOP, 65, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        EXPECT_ERROR(syscall(SYS_rt_sigaction, refused[i], &action, NULL, KERNEL_SET_BYTES), EINVAL);
    EXPECT(syscall(SYS_rt_sigaction, SIGKILL, NULL, NULL, KERNEL_SET_BYTES), 0);
    EXPECT(syscall(SYS_rt_sigaction, 64, &action, NULL, KERNEL_SET_BYTES), 0);
}

static void action_sizes(void)
{
    struct sigaction action = {.sa_handler = SIG_IGN};
    EXPECT_ERROR(syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 4), EINVAL);
    EXPECT_ERROR(syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 16), EINVAL);
    EXPECT_ERROR(syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, sizeof(sigset_t)), EINVAL);
}

static void action_addresses(void)
{
    struct sigaction action;
    EXPECT_ERROR(syscall(SYS_rt_sigaction, SIGUSR1, NOWHERE, NULL, KERNEL_SET_BYTES), EFAULT);
    EXPECT_ERROR(syscall(SYS_rt_sigaction, SIGUSR1, NULL, NOWHERE, KERNEL_SET_BYTES), EFAULT);
    EXPECT_ERROR(syscall(SYS_rt_sigaction, SIGUSR1, NOT_CANONICAL, NULL, KERNEL_SET_BYTES), EFAULT);
    sigaction(SIGUSR1, NULL, &action);
    EXPECT_TRUE(action.sa_handler == SIG_DFL);
}

static void action_read_back(void)
{
    struct sigaction given = {.sa_sigaction = note_info, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART}, got;
    given.sa_mask = set_of(SIGUSR2, SIGHUP);
    sigaction(SIGUSR1, &given, NULL);
    EXPECT(sigaction(SIGUSR1, &given, &got), 0);
    EXPECT_TRUE(got.sa_sigaction == note_info);
    EXPECT(got.sa_flags & ~0x04000000, SA_SIGINFO | SA_NODEFER | SA_RESTART);
    EXPECT(sigismember(&got.sa_mask, SIGUSR2), 1);
    EXPECT(sigismember(&got.sa_mask, SIGUSR1), 0);
}

static void mask_keeps_unblockable(void)
{
    sigset_t all, got;
    sigfillset(&all);
    EXPECT(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, KERNEL_SET_BYTES), 0);
    EXPECT(sigprocmask(SIG_BLOCK, NULL, &got), 0);
    EXPECT(sigismember(&got, SIGKILL), 0);
    EXPECT(sigismember(&got, SIGSTOP), 0);
    EXPECT(sigismember(&got, SIGSEGV), 1);
    EXPECT(sigismember(&got, SIGTRAP), 1);
    EXPECT(sigismember(&got, SIGRTMAX), 1);
}

static void mask_errors(void)
{
    sigset_t set = set_of(SIGUSR1, 0), got;
    EXPECT_ERROR(syscall(SYS_rt_sigprocmask, 3, &set, NULL, KERNEL_SET_BYTES), EINVAL);
    EXPECT_ERROR(syscall(SYS_rt_sigprocmask, -1, &set, NULL, KERNEL_SET_BYTES), EINVAL);
    EXPECT(syscall(SYS_rt_sigprocmask, 77, NULL, &got, KERNEL_SET_BYTES), 0);
    EXPECT_ERROR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NULL, 128), EINVAL);
    EXPECT_ERROR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NOWHERE, NULL, KERNEL_SET_BYTES), EFAULT);
    EXPECT_ERROR(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, NOWHERE, KERNEL_SET_BYTES), EFAULT);
    sigprocmask(SIG_BLOCK, NULL, &got);
    EXPECT(sigismember(&got, SIGUSR1), 1); /* The new mask is set before the old one is written. */
}

static void blocked_wait(void)
{
    handle(SIGUSR1, 0);
    block(SIGUSR1, 0);
    for (int i = 0; i < 5; i++)
        raise(SIGUSR1);
    EXPECT(n_handled, 0);
    EXPECT(is_waiting(SIGUSR1), 1);
    unblock(SIGUSR1, 0);
    EXPECT(n_handled, 1);
    EXPECT(is_waiting(SIGUSR1), 0);
}

static void ignored_while_blocked(void)
{
    block(SIGUSR1, 0);
    raise(SIGUSR1);
    EXPECT(is_waiting(SIGUSR1), 1);
    signal(SIGUSR1, SIG_IGN);
    EXPECT(is_waiting(SIGUSR1), 0);
    raise(SIGUSR1);
    EXPECT(is_waiting(SIGUSR1), 1); /* Kept, as somebody may wait for it. */
    unblock(SIGUSR1, 0);
    EXPECT(is_waiting(SIGUSR1), 0);
}

static void default_of_ignored(void)
{
    static const int numbers[] = {SIGCHLD, SIGURG, SIGWINCH, SIGCONT};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        EXPECT(raise(numbers[i]), 0);
}

static void pending_errors(void)
{
    EXPECT_ERROR(syscall(SYS_rt_sigpending, NOWHERE, KERNEL_SET_BYTES), EFAULT);
    EXPECT_ERROR(syscall(SYS_rt_sigpending, &told, 16), EINVAL);
    uint32_t half[2] = {7, 7};
    EXPECT(syscall(SYS_rt_sigpending, half, 4), 0);
    EXPECT(half[0], 0);
    EXPECT(half[1], 7);
}

static void handler_masks(void)
{
    struct sigaction action = {.sa_handler = note, .sa_mask = set_of(SIGUSR2, 0)};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_mask = set_of(0, 0);
    sigaction(SIGUSR2, &action, NULL);
    block(SIGUSR1, SIGUSR2);
    raise(SIGUSR2);
    raise(SIGUSR1);
    unblock(SIGUSR1, SIGUSR2);
    /* Frames are built from the lower number on: SIGUSR2's, whose signal SIGUSR1's mask blocks, is built after it has run. */
    EXPECT(n_handled, 2);
    EXPECT(order[0], SIGUSR1);
    EXPECT(order[1], SIGUSR2);
}

static volatile sig_atomic_t depth, deepest, n_more;

static void nest(int number)
{
    if (++depth > deepest)
        deepest = depth;
    if (n_more-- > 0)
        raise(number);
    depth--;
}

static void not_deferred(void)
{
    struct sigaction action = {.sa_handler = nest, .sa_flags = SA_NODEFER};
    sigaction(SIGUSR1, &action, NULL);
    n_more = 4;
    raise(SIGUSR1);
    EXPECT(deepest, 5);
    EXPECT(depth, 0);
}

static void deferred(void)
{
    struct sigaction action = {.sa_handler = nest};
    sigaction(SIGUSR1, &action, NULL);
    n_more = 4;
    raise(SIGUSR1);
    EXPECT(deepest, 1);
    EXPECT(n_more, -1);
}

static void handled_once(void)
{
    struct sigaction got;
    handle(SIGUSR1, SA_RESETHAND);
    raise(SIGUSR1);
    EXPECT(n_handled, 1);
    sigaction(SIGUSR1, NULL, &got);
    EXPECT_TRUE(got.sa_handler == SIG_DFL);
}

static void sender_told(void)
{
    handle(SIGUSR1, 0);
    kill(getpid(), SIGUSR1);
    EXPECT(told.si_code, SI_USER);
    EXPECT(told.si_pid, getpid());
    EXPECT(told.si_uid, getuid());
    raise(SIGUSR1);
    EXPECT(told.si_code, SI_TKILL);
    EXPECT(sigqueue(getpid(), SIGUSR1, (union sigval){.sival_int = 99}), 0);
    EXPECT(told.si_code, SI_QUEUE);
    EXPECT(told.si_value.sival_int, 99);
}

static void sending_errors(void)
{
    EXPECT_ERROR(kill(getpid(), 65), EINVAL);
    EXPECT_ERROR(kill(getpid(), -1), EINVAL);
    EXPECT_ERROR(kill(INT_MAX, 0), ESRCH);
    EXPECT_ERROR(kill(INT_MIN, 0), ESRCH);
    EXPECT(kill(getpid(), 0), 0);
    EXPECT_ERROR(syscall(SYS_tkill, 0, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_tkill, -5, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_tkill, INT_MAX, 0), ESRCH);
    EXPECT_ERROR(syscall(SYS_tgkill, 0, gettid(), 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_tgkill, getppid(), gettid(), 0), ESRCH);
    EXPECT(syscall(SYS_tgkill, getpid(), gettid(), 0), 0);
}

static void queueing_errors(void)
{
    siginfo_t info = {.si_code = SI_USER};
    EXPECT_ERROR(syscall(SYS_rt_sigqueueinfo, getppid(), SIGUSR1, &info), EPERM);
    EXPECT_ERROR(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, NOWHERE), EFAULT);
    info.si_code = SI_QUEUE;
    EXPECT_ERROR(syscall(SYS_rt_sigqueueinfo, getpid(), 65, &info), EINVAL);
    EXPECT_ERROR(syscall(SYS_rt_tgsigqueueinfo, getpid(), -1, SIGUSR1, &info), EINVAL);
    EXPECT_ERROR(syscall(SYS_rt_tgsigqueueinfo, getpid(), INT_MAX, SIGUSR1, &info), ESRCH);
}

static void queued_in_order(void)
{
    int first = SIGRTMIN, second = SIGRTMIN + 1;
    sigset_t set = set_of(first, second);
    siginfo_t info;
    block(first, second);
    for (int i = 0; i < 5; i++) {
        sigqueue(getpid(), second, (union sigval){.sival_int = 10 + i});
        sigqueue(getpid(), first, (union sigval){.sival_int = i});
    }
    for (int i = 0; i < 5; i++) {
        EXPECT(sigwaitinfo(&set, &info), first);
        EXPECT(info.si_value.sival_int, i);
    }
    for (int i = 0; i < 5; i++) {
        EXPECT(sigwaitinfo(&set, &info), second);
        EXPECT(info.si_value.sival_int, 10 + i);
    }
    struct timespec none = {0};
    EXPECT_ERROR(sigtimedwait(&set, &info, &none), EAGAIN);
}

static void timed_wait_errors(void)
{
    sigset_t set = set_of(SIGUSR1, 0);
    struct timespec bad = {0, 1000000000}, negative = {-1, 0};
    EXPECT_ERROR(sigtimedwait(&set, NULL, &bad), EINVAL);
    EXPECT_ERROR(sigtimedwait(&set, NULL, &negative), EINVAL);
    EXPECT_ERROR(syscall(SYS_rt_sigtimedwait, NOWHERE, NULL, NULL, KERNEL_SET_BYTES), EFAULT);
    EXPECT_ERROR(syscall(SYS_rt_sigtimedwait, &set, NULL, NOWHERE, KERNEL_SET_BYTES), EFAULT);
    EXPECT_ERROR(syscall(SYS_rt_sigtimedwait, &set, NULL, NULL, 4), EINVAL);
    block(SIGUSR1, 0);
    raise(SIGUSR1);
    EXPECT_ERROR(syscall(SYS_rt_sigtimedwait, &set, NOWHERE, NULL, KERNEL_SET_BYTES), EFAULT);
    EXPECT(is_waiting(SIGUSR1), 0); /* It is taken all the same. */
}

static void wait_cut_short(void)
{
    sigset_t set = set_of(SIGUSR1, 0);
    struct timespec limit = {10, 0};
    block(SIGUSR1, 0);
    handle(SIGALRM, SA_RESTART);
    ualarm(2000, 1000);
    EXPECT_ERROR(sigtimedwait(&set, NULL, &limit), EINTR);
    ualarm(0, 0);
    EXPECT_TRUE(n_handled > 0);
}

static void suspended(void)
{
    sigset_t empty = set_of(0, 0), got;
    handle(SIGUSR1, 0);
    block(SIGUSR1, SIGUSR2);
    raise(SIGUSR1);
    EXPECT_ERROR(sigsuspend(&empty), EINTR);
    EXPECT(n_handled, 1);
    sigprocmask(SIG_BLOCK, NULL, &got);
    EXPECT(sigismember(&got, SIGUSR1), 1);
    EXPECT(sigismember(&got, SIGUSR2), 1);
    EXPECT_ERROR(syscall(SYS_rt_sigsuspend, &empty, 16), EINVAL);
    EXPECT_ERROR(syscall(SYS_rt_sigsuspend, NOWHERE, KERNEL_SET_BYTES), EFAULT);
}

static void pause_interrupted(void)
{
    handle(SIGALRM, SA_RESTART);
    ualarm(2000, 1000);
    EXPECT_ERROR(pause(), EINTR);
    ualarm(0, 0);
    EXPECT_TRUE(n_handled > 0);
}

static void read_restarted(void)
{
    struct gate gate = make_gate();
    char byte;
    pid_t parent = getpid();
    handle(SIGUSR1, SA_RESTART);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 10; i++) {
            kill(parent, SIGUSR1);
            usleep(300);
        }
        open_gate(gate);
        _exit(0);
    }
    EXPECT(read(gate.ends[0], &byte, 1), 1);
    EXPECT_TRUE(n_handled > 0);
    EXPECT(ended(child), 0);
}

static void read_interrupted(void)
{
    struct gate gate = make_gate();
    char byte;
    handle(SIGALRM, 0);
    ualarm(2000, 1000);
    EXPECT_ERROR(read(gate.ends[0], &byte, 1), EINTR);
    ualarm(0, 0);
    EXPECT_TRUE(n_handled > 0);
}

static void stack_errors(void)
{
    static char memory[65536];
    stack_t stack = {.ss_sp = memory, .ss_size = 100}, got;
    EXPECT_ERROR(sigaltstack(&stack, NULL), ENOMEM);
    stack = (stack_t){.ss_sp = memory, .ss_size = sizeof memory, .ss_flags = 64};
    EXPECT_ERROR(sigaltstack(&stack, NULL), EINVAL);
    EXPECT_ERROR(sigaltstack(NOWHERE, NULL), EFAULT);
    EXPECT_ERROR(sigaltstack(NULL, NOWHERE), EFAULT);
    EXPECT(sigaltstack(NULL, &got), 0);
    EXPECT(got.ss_flags, SS_DISABLE);
    stack.ss_flags = SS_ONSTACK;
    EXPECT(sigaltstack(&stack, NULL), 0);
    EXPECT(sigaltstack(NULL, &got), 0);
    EXPECT(got.ss_flags, 0);
    EXPECT_TRUE(got.ss_sp == memory);
    EXPECT(got.ss_size, sizeof memory);
}

static char other_stack[65536];
static volatile int flags_inside, change_inside, is_on_stack;

static void look_at_stack(int number)
{
    char here;
    stack_t got, other = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    (void)number;
    sigaltstack(NULL, &got);
    flags_inside = got.ss_flags;
    is_on_stack = &here >= other_stack && &here < other_stack + sizeof other_stack;
    change_inside = sigaltstack(&other, NULL) == 0 ? 0 : errno;
}

static void on_other_stack(void)
{
    stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof other_stack}, got;
    struct sigaction action = {.sa_handler = look_at_stack, .sa_flags = SA_ONSTACK};
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    EXPECT(is_on_stack, 1);
    EXPECT(flags_inside, SS_ONSTACK);
    EXPECT(change_inside, EPERM);
    sigaltstack(NULL, &got);
    EXPECT(got.ss_flags, 0);
}

static sigjmp_buf back;

static void jump_back(int number)
{
    n_handled++;
    siglongjmp(back, number);
}

static void jumped_from_faults(void)
{
    signal(SIGSEGV, jump_back);
    signal(SIGILL, jump_back);
    signal(SIGFPE, jump_back);
    for (volatile int i = 0; i < 9; i++) {
        int number = sigsetjmp(back, 1);
        if (number) {
            EXPECT(number, i % 3 == 0 ? SIGSEGV : i % 3 == 1 ? SIGILL : SIGFPE);
            continue;
        }
        volatile int one = 1, zero = 0;
        if (i % 3 == 0)
            *(volatile char *)NOWHERE = 1;
        else if (i % 3 == 1)
            __asm__ volatile("ud2");
        else
            zero = one / zero;
        tell_wrong("fault %d did not come", i);
    }
    EXPECT(n_handled, 9);
}

static void fault_not_repaired(void)
{
    struct sigaction action = {.sa_sigaction = note_info, .sa_flags = SA_SIGINFO | SA_RESETHAND};
    void *memory = pages(1, PROT_READ);
    pid_t child = fork();
    if (child == 0) {
        sigaction(SIGSEGV, &action, NULL);
        *(volatile char *)memory = 1;
        _exit(0);
    }
    EXPECT(ended(child), BY_SIGNAL(SIGSEGV));
}

static void *fault_at;

static void repair(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    told = *info;
    n_handled++;
    mprotect(fault_at, PAGE, PROT_READ | PROT_WRITE);
}

static void fault_repaired(void)
{
    struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    fault_at = pages(1, PROT_READ);
    ((volatile char *)fault_at)[77] = 5;
    EXPECT(n_handled, 1);
    EXPECT(told.si_code, SEGV_ACCERR);
    EXPECT((char *)told.si_addr - (char *)fault_at, 77);
    EXPECT(((char *)fault_at)[77], 5);
}

static void fault_while_blocked(void)
{
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, note);
        block(SIGSEGV, 0);
        *(volatile char *)NOWHERE = 1;
        _exit(0);
    }
    EXPECT(ended(child), BY_SIGNAL(SIGSEGV));
}

static void aborted_in_handler(void)
{
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, note);
        abort();
    }
    EXPECT(ended(child), BY_SIGNAL(SIGABRT));
}

static void mask_from_context(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info;
    n_handled++;
    sigaddset(&((ucontext_t *)context)->uc_sigmask, SIGUSR2);
}

static void mask_changed_in_context(void)
{
    struct sigaction action = {.sa_sigaction = mask_from_context, .sa_flags = SA_SIGINFO};
    sigset_t got;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    sigprocmask(SIG_BLOCK, NULL, &got);
    EXPECT(sigismember(&got, SIGUSR2), 1);
    EXPECT(sigismember(&got, SIGUSR1), 0);
}

static void read_from_descriptor(void)
{
    sigset_t set = set_of(SIGUSR1, SIGRTMIN);
    struct signalfd_siginfo got[3];
    block(SIGUSR1, SIGRTMIN);
    int descriptor = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    struct pollfd polled = {descriptor, POLLIN, 0};
    EXPECT_ERROR(read(descriptor, got, sizeof got), EAGAIN);
    EXPECT(poll(&polled, 1, 0), 0);
    sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 5});
    sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 6});
    raise(SIGUSR1);
    EXPECT(poll(&polled, 1, 0), 1);
    EXPECT(read(descriptor, got, sizeof got), sizeof got);
    EXPECT(got[0].ssi_signo, SIGUSR1);
    EXPECT(got[1].ssi_int, 5);
    EXPECT(got[2].ssi_int, 6);
    EXPECT(got[2].ssi_pid, getpid());
    EXPECT_ERROR(read(descriptor, got, sizeof got[0] - 1), EINVAL);
}

static void descriptor_errors(void)
{
    sigset_t set = set_of(SIGUSR1, 0);
    EXPECT_ERROR(signalfd(-1, &set, 0x40000000), EINVAL);
    EXPECT_ERROR(signalfd(900, &set, 0), EBADF);
    EXPECT_ERROR(signalfd(1, &set, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_signalfd4, -1, NOWHERE, KERNEL_SET_BYTES, 0), EFAULT);
    EXPECT_ERROR(syscall(SYS_signalfd4, -1, &set, 4, 0), EINVAL);
}

static volatile int thread_id, thread_handled;

static void note_thread(int number)
{
    (void)number;
    thread_handled = gettid();
}

static void *loop_in_thread(void *unused)
{
    thread_id = gettid();
    while (!thread_handled)
        ;
    return unused;
}

static void to_one_thread(void)
{
    pthread_t thread;
    signal(SIGUSR1, note_thread);
    pthread_create(&thread, NULL, loop_in_thread, NULL);
    while (!thread_id)
        ;
    EXPECT(pthread_kill(thread, SIGUSR1), 0);
    pthread_join(thread, NULL);
    EXPECT(thread_handled, thread_id);
    EXPECT_ERROR(syscall(SYS_tgkill, getpid(), thread_id, 0), ESRCH);
}

static void to_unblocked_thread(void)
{
    pthread_t thread;
    signal(SIGUSR1, note_thread);
    pthread_create(&thread, NULL, loop_in_thread, NULL);
    while (!thread_id)
        ;
    block(SIGUSR1, 0);
    kill(getpid(), SIGUSR1);
    pthread_join(thread, NULL);
    EXPECT(thread_handled, thread_id);
}

static void polled_with_mask(void)
{
    sigset_t empty = set_of(0, 0);
    handle(SIGUSR1, 0);
    block(SIGUSR1, 0);
    raise(SIGUSR1);
    EXPECT_ERROR(ppoll(NULL, 0, NULL, &empty), EINTR);
    EXPECT(n_handled, 1);
    EXPECT_ERROR(syscall(SYS_ppoll, NULL, 0, NULL, &empty, 16), EINVAL);
    EXPECT_ERROR(syscall(SYS_ppoll, NULL, 0, NULL, NOWHERE, KERNEL_SET_BYTES), EFAULT);
}

static void default_ends(void)
{
    for (int number = 1; number < 65; number++) {
        if (number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH || number == SIGSTOP ||
            number == SIGTSTP || number == SIGTTIN || number == SIGTTOU || number == 32 || number == 33)
            continue;
        pid_t child = fork();
        if (child == 0) {
            kill(getpid(), number);
            _exit(0);
        }
        EXPECT(ended(child), BY_SIGNAL(number));
    }
}

static const struct one_case cases[] = {
    CASE(action_numbers),
    CASE(action_sizes),
    CASE(action_addresses),
    CASE(action_read_back),
    CASE(mask_keeps_unblockable),
    CASE(mask_errors),
    CASE(blocked_wait),
    CASE(ignored_while_blocked),
    CASE(default_of_ignored),
    CASE(pending_errors),
    CASE(handler_masks),
    CASE(not_deferred),
    CASE(deferred),
    CASE(handled_once),
    CASE(sender_told),
    CASE(sending_errors),
    CASE(queueing_errors),
    CASE(queued_in_order),
    CASE(timed_wait_errors),
    CASE(wait_cut_short),
    CASE(suspended),
    CASE(pause_interrupted),
    CASE(read_restarted),
    CASE(read_interrupted),
    CASE(stack_errors),
    CASE(on_other_stack),
    CASE(jumped_from_faults),
    CASE(fault_not_repaired),
    CASE(fault_repaired),
    CASE(fault_while_blocked),
    CASE(aborted_in_handler),
    CASE(mask_changed_in_context),
    CASE(read_from_descriptor),
    CASE(descriptor_errors),
    CASE(to_one_thread),
    CASE(to_unblocked_thread),
    CASE(polled_with_mask),
    CASE(default_ends),
};

int main(int count, char **arguments)
{
    (void)count;
    return RUN_CASES(cases, arguments + 1);
}
