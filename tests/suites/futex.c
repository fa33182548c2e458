/* futex: waiting, waking, requeueing, operations on two words, bit sets, locks that the kernel keeps, robust lists: effects and errors. */
#include "cases.h"
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

static uint32_t words[4];

static long futex(void *word, int operation, uint32_t value, const void *limit, void *second, uint32_t third)
{
    return syscall(SYS_futex, word, operation, value, limit, second, third);
}

static long wake_until(void *word, int operation, uint32_t bits)
{
    long n_woken;
    do
        n_woken = futex(word, operation, 1, NULL, NULL, bits);
    while (n_woken == 0);
    return n_woken;
}

static const struct timespec soon = {0, 2000000};

static void value_differs(void)
{
    words[0] = 5;
    EXPECT_ERROR(futex(words, FUTEX_WAIT, 4, NULL, NULL, 0), EAGAIN);
    EXPECT_ERROR(futex(words, FUTEX_WAIT_PRIVATE, 4, NULL, NULL, 0), EAGAIN);
    EXPECT_ERROR(futex(words, FUTEX_WAIT_BITSET, 4, NULL, NULL, 1), EAGAIN);
}

static void wait_times_out(void)
{
    EXPECT_ERROR(futex(words, FUTEX_WAIT, 0, &soon, NULL, 0), ETIMEDOUT);
    EXPECT_ERROR(futex(words, FUTEX_WAIT_PRIVATE, 0, &soon, NULL, 0), ETIMEDOUT);
    struct timespec now = {0};
    EXPECT_ERROR(futex(words, FUTEX_WAIT, 0, &now, NULL, 0), ETIMEDOUT);
}

static void wait_until_time(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    EXPECT_ERROR(futex(words, FUTEX_WAIT_BITSET, 0, &until, NULL, 1), ETIMEDOUT);
    clock_gettime(CLOCK_REALTIME, &until);
    EXPECT_ERROR(futex(words, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &until, NULL, 1), ETIMEDOUT);
}

static void bad_times(void)
{
    struct timespec too_large = {0, 1000000000}, negative = {-1, 0};
    EXPECT_ERROR(futex(words, FUTEX_WAIT, 0, &too_large, NULL, 0), EINVAL);
    EXPECT_ERROR(futex(words, FUTEX_WAIT, 0, &negative, NULL, 0), EINVAL);
    EXPECT_ERROR(futex(words, FUTEX_WAIT, 0, NOWHERE, NULL, 0), EFAULT);
    EXPECT_ERROR(futex(words, FUTEX_LOCK_PI, 0, &too_large, NULL, 0), EINVAL);
}

static void bad_addresses(void)
{
    EXPECT_ERROR(futex((char *)words + 1, FUTEX_WAIT, 0, NULL, NULL, 0), EINVAL);
    EXPECT_ERROR(futex((char *)words + 2, FUTEX_WAKE, 1, NULL, NULL, 0), EINVAL);
    EXPECT_ERROR(futex(NOWHERE, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
    EXPECT_ERROR(futex(NOWHERE, FUTEX_WAKE, 1, NULL, NULL, 0), EFAULT);
    EXPECT_ERROR(futex(NOT_CANONICAL, FUTEX_WAKE, 1, NULL, NULL, 0), EFAULT);
    EXPECT_ERROR(futex(words, FUTEX_REQUEUE, 1, (void *)1, (char *)words + 6, 0), EINVAL);
}

static void bad_operations(void)
{
    EXPECT_ERROR(futex(words, 99, 0, NULL, NULL, 0), ENOSYS);
    EXPECT_ERROR(futex(words, 127, 0, NULL, NULL, 0), ENOSYS);
    EXPECT_ERROR(futex(words, FUTEX_FD, 0, NULL, NULL, 0), ENOSYS);
    EXPECT_ERROR(futex(words, FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 0, NULL, NULL, 0), ENOSYS);
}

static void no_bits(void)
{
    EXPECT_ERROR(futex(words, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0), EINVAL);
    EXPECT_ERROR(futex(words, FUTEX_WAKE_BITSET, 1, NULL, NULL, 0), EINVAL);
}

static void nobody_woken(void)
{
    EXPECT(futex(words, FUTEX_WAKE, INT_MAX, NULL, NULL, 0), 0);
    EXPECT(futex(words, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 0);
    EXPECT(futex(words, FUTEX_WAKE_BITSET, 1, NULL, NULL, FUTEX_BITSET_MATCH_ANY), 0);
    EXPECT(futex(words, FUTEX_REQUEUE, 1, (void *)1, words + 1, 0), 0);
}

static void *wait_plainly(void *word)
{
    return (void *)futex(word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void thread_woken(void)
{
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, wait_plainly, words);
    EXPECT(wake_until(words, FUTEX_WAKE_PRIVATE, 0), 1);
    pthread_join(thread, &result);
    EXPECT((long)result, 0);
}

static void many_woken(void)
{
    enum { N = 4 };
    pthread_t threads[N];
    long n_woken = 0;
    for (int i = 0; i < N; i++)
        pthread_create(&threads[i], NULL, wait_plainly, words);
    while (n_woken < N)
        n_woken += futex(words, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    EXPECT(n_woken, N);
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
}

static void process_woken(void)
{
    volatile int *cells = shared_ints();
    pid_t child = fork();
    if (child == 0)
        _exit(futex((void *)cells, FUTEX_WAIT, 0, NULL, NULL, 0) == 0 ? 7 : 8);
    EXPECT(wake_until((void *)cells, FUTEX_WAKE, 0), 1);
    EXPECT(ended(child), 7);
}

static void private_is_private(void)
{
    volatile int *cells = shared_ints();
    pid_t child = fork();
    if (child == 0)
        _exit(futex((void *)cells, FUTEX_WAIT, 0, NULL, NULL, 0) == 0 ? 7 : 8);
    for (int i = 0; i < 50; i++)
        EXPECT(futex((void *)cells, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 0);
    EXPECT(wake_until((void *)cells, FUTEX_WAKE, 0), 1);
    EXPECT(ended(child), 7);
}

static void *wait_for_bits(void *bits)
{
    return (void *)futex(words, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, (uint32_t)(uintptr_t)bits);
}

static void woken_by_bits(void)
{
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, wait_for_bits, (void *)6UL);
    for (int i = 0; i < 50; i++)
        EXPECT(futex(words, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 9), 0);
    EXPECT(wake_until(words, FUTEX_WAKE_BITSET_PRIVATE, 4), 1);
    pthread_join(thread, &result);
    EXPECT((long)result, 0);
}

static void moved_to_another(void)
{
    pthread_t thread;
    long n_moved;
    pthread_create(&thread, NULL, wait_plainly, words);
    do
        n_moved = futex(words, FUTEX_REQUEUE_PRIVATE, 0, (void *)1, words + 1, 0);
    while (n_moved == 0);
    EXPECT(n_moved, 1);
    EXPECT(futex(words, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 0);
    EXPECT(futex(words + 1, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 1);
    pthread_join(thread, NULL);
}

static void moved_if_equal(void)
{
    pthread_t thread;
    long n_moved;
    EXPECT_ERROR(futex(words, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)1, words + 1, 77), EAGAIN);
    pthread_create(&thread, NULL, wait_plainly, words);
    do
        n_moved = futex(words, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)1, words + 1, 0);
    while (n_moved == 0);
    EXPECT(n_moved, 1);
    EXPECT(futex(words + 1, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 1);
    pthread_join(thread, NULL);
    EXPECT_ERROR(futex(words, FUTEX_CMP_REQUEUE, (uint32_t)-1, (void *)1, words + 1, 0), EINVAL);
}

static void second_word_changed(void)
{
    words[1] = 10;
    EXPECT(futex(words, FUTEX_WAKE_OP, 1, (void *)1, words + 1, FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_EQ, 10)), 0);
    EXPECT(words[1], 15);
    EXPECT(futex(words, FUTEX_WAKE_OP, 1, (void *)1, words + 1, FUTEX_OP(FUTEX_OP_SET, 6, FUTEX_OP_CMP_GT, 1)), 0);
    EXPECT(words[1], 6);
    EXPECT(futex(words, FUTEX_WAKE_OP, 1, (void *)1, words + 1, FUTEX_OP(FUTEX_OP_OR, 9, FUTEX_OP_CMP_NE, 1)), 0);
    EXPECT(words[1], 15);
    EXPECT(futex(words, FUTEX_WAKE_OP, 1, (void *)1, words + 1, FUTEX_OP(FUTEX_OP_ANDN, 3, FUTEX_OP_CMP_LT, 1)), 0);
    EXPECT(words[1], 12);
    EXPECT(futex(words, FUTEX_WAKE_OP, 1, (void *)1, words + 1, FUTEX_OP(FUTEX_OP_XOR, 5, FUTEX_OP_CMP_LE, 1)), 0);
    EXPECT(words[1], 9);
    EXPECT_ERROR(futex(words, FUTEX_WAKE_OP, 1, (void *)1, words + 1, FUTEX_OP(7, 5, FUTEX_OP_CMP_LE, 1)), ENOSYS);
    EXPECT_ERROR(futex(words, FUTEX_WAKE_OP, 1, (void *)1, NOWHERE, 0), EFAULT);
}

static void second_word_unwritable(void)
{
    uint32_t *memory = pages(1, PROT_READ);
    EXPECT_ERROR(futex(words, FUTEX_WAKE_OP, 1, (void *)1, memory, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)), EFAULT);
    EXPECT(memory[0], 0);
}

static void lock_kept_by_kernel(void)
{
    EXPECT(futex(words, FUTEX_LOCK_PI, 0, NULL, NULL, 0), 0);
    EXPECT(words[0], gettid());
    EXPECT_ERROR(futex(words, FUTEX_LOCK_PI, 0, NULL, NULL, 0), EDEADLK);
    EXPECT_ERROR(futex(words, FUTEX_TRYLOCK_PI, 0, NULL, NULL, 0), EDEADLK);
    EXPECT(futex(words, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), 0);
    EXPECT(words[0], 0);
    EXPECT_ERROR(futex(words, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), EPERM);
}

static void lock_of_nobody(void)
{
    words[0] = FUTEX_TID_MASK;
    EXPECT_ERROR(futex(words, FUTEX_LOCK_PI, 0, NULL, NULL, 0), ESRCH);
    words[0] = (uint32_t)getppid();
    EXPECT_ERROR(futex(words, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), EPERM);
}

static void *lock_with_limit(void *unused)
{
    (void)unused;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    errno = 0;
    long result = futex(words, FUTEX_LOCK_PI_PRIVATE, 0, &until, NULL, 0);
    int error = errno;
    errno = 0;
    long second = futex(words, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
    return (void *)(long)(result == -1 && error == ETIMEDOUT && second == -1 && errno == EAGAIN);
}

static void lock_times_out(void)
{
    pthread_t thread;
    void *result;
    EXPECT(futex(words, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0), 0);
    pthread_create(&thread, NULL, lock_with_limit, NULL);
    pthread_join(thread, &result);
    EXPECT((long)result, 1);
    EXPECT(futex(words, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0), 0);
}

static void *lock_and_unlock(void *unused)
{
    long result = futex(words, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0);
    result |= (words[0] & FUTEX_TID_MASK) != (uint32_t)gettid();
    result |= futex(words, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
    return result ? words : unused;
}

static void lock_handed_over(void)
{
    pthread_t thread;
    void *result;
    EXPECT(futex(words, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0), 0);
    pthread_create(&thread, NULL, lock_and_unlock, NULL);
    while (!(__atomic_load_n(&words[0], __ATOMIC_RELAXED) & FUTEX_WAITERS))
        ;
    EXPECT(futex(words, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0), 0);
    pthread_join(thread, &result);
    EXPECT((long)result, 0);
    EXPECT(words[0], 0);
}

static void robust_list_errors(void)
{
    struct robust_list_head *head = NULL, own;
    size_t length = 0;
    EXPECT(syscall(SYS_get_robust_list, 0, &head, &length), 0);
    EXPECT(length, sizeof own);
    EXPECT_ERROR(syscall(SYS_set_robust_list, &own, sizeof own - 1), EINVAL);
    EXPECT_ERROR(syscall(SYS_set_robust_list, &own, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_get_robust_list, INT_MAX, &head, &length), ESRCH);
    EXPECT_ERROR(syscall(SYS_get_robust_list, 0, NOWHERE, &length), EFAULT);
    EXPECT_ERROR(syscall(SYS_get_robust_list, 0, &head, NOWHERE), EFAULT);
}

struct robust_lock {
    struct robust_list link;
    uint32_t word;
};

static void own_robust_list(void)
{
    struct robust_lock *lock = (void *)shared_ints();
    pid_t child = fork();
    if (child == 0) {
        static struct robust_list_head head;
        head.list.next = &lock->link;
        lock->link.next = &head.list;
        head.futex_offset = offsetof(struct robust_lock, word);
        lock->word = (uint32_t)gettid();
        _exit(syscall(SYS_set_robust_list, &head, sizeof head) != 0);
    }
    EXPECT(ended(child), 0);
    EXPECT(lock->word, FUTEX_OWNER_DIED);
}

static void *die_with_lock(void *lock)
{
    return (void *)(long)pthread_mutex_lock(lock);
}

static void owner_died(void)
{
    pthread_mutexattr_t kind;
    pthread_mutex_t lock;
    pthread_t thread;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&lock, &kind);
    pthread_create(&thread, NULL, die_with_lock, &lock);
    pthread_join(thread, NULL);
    EXPECT(pthread_mutex_lock(&lock), EOWNERDEAD);
    EXPECT(pthread_mutex_consistent(&lock), 0);
    EXPECT(pthread_mutex_unlock(&lock), 0);
    EXPECT(pthread_mutex_lock(&lock), 0);
}

static void killed_with_lock(void)
{
    pthread_mutexattr_t kind;
    pthread_mutex_t *lock = (void *)shared_ints();
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(lock, &kind);
    pid_t child = fork();
    if (child == 0) {
        pthread_mutex_lock(lock);
        raise(SIGKILL);
    }
    EXPECT(ended(child), BY_SIGNAL(SIGKILL));
    EXPECT(pthread_mutex_lock(lock), EOWNERDEAD);
    EXPECT(pthread_mutex_unlock(lock), 0);
    EXPECT(pthread_mutex_lock(lock), ENOTRECOVERABLE);
}

static void note(int number)
{
    (void)number;
}

static void wait_interrupted(void)
{
    struct sigaction action = {.sa_handler = note};
    sigaction(SIGALRM, &action, NULL);
    ualarm(2000, 1000);
    EXPECT_ERROR(futex(words, FUTEX_WAIT, 0, NULL, NULL, 0), EINTR);
    ualarm(0, 0);
}

static void thread_id_cleared(void)
{
    volatile int *cells = shared_ints();
    pid_t child = fork();
    if (child == 0) {
        cells[0] = 1;
        _exit(syscall(SYS_set_tid_address, &cells[0]) != getpid());
    }
    EXPECT(ended(child), 0);
    EXPECT(cells[0], 1); /* The memory was its own alone: nobody is told. */
}

static void many_words_waited_for(void)
{
    struct futex_waitv waiters[2] = {{0, (uintptr_t)&words[0], FUTEX_32 | FUTEX_PRIVATE_FLAG, 0},
                                     {0, (uintptr_t)&words[1], FUTEX_32 | FUTEX_PRIVATE_FLAG, 0}};
    struct timespec now;
    if (syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0) == -1 && errno == ENOSYS) {
        skip_case("no futex_waitv");
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    EXPECT_ERROR(syscall(SYS_futex_waitv, waiters, 2, 0, &now, CLOCK_MONOTONIC), ETIMEDOUT);
    EXPECT_ERROR(syscall(SYS_futex_waitv, waiters, 2, 1, NULL, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_futex_waitv, waiters, 0, 0, NULL, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_futex_waitv, waiters, 129, 0, NULL, 0), EINVAL);
    EXPECT_ERROR(syscall(SYS_futex_waitv, NOWHERE, 2, 0, NULL, 0), EFAULT);
    EXPECT_ERROR(syscall(SYS_futex_waitv, waiters, 2, 0, &now, 77), EINVAL);
    words[1] = 3;
    EXPECT_ERROR(syscall(SYS_futex_waitv, waiters, 2, 0, NULL, 0), EAGAIN);
}

static const struct one_case cases[] = {
    CASE(value_differs),      CASE(wait_times_out),      CASE(wait_until_time),        CASE(bad_times),
    CASE(bad_addresses),      CASE(bad_operations),      CASE(no_bits),                CASE(nobody_woken),
    CASE(thread_woken),       CASE(many_woken),          CASE(process_woken),          CASE(private_is_private),
    CASE(woken_by_bits),      CASE(moved_to_another),    CASE(moved_if_equal),         CASE(second_word_changed),
    CASE(lock_kept_by_kernel), CASE(lock_of_nobody),     CASE(lock_times_out),         CASE(lock_handed_over),
    CASE(robust_list_errors), CASE(own_robust_list),     CASE(owner_died),             CASE(killed_with_lock),
    CASE(wait_interrupted),   CASE(thread_id_cleared),   CASE(many_words_waited_for),  CASE(second_word_unwritable),
};

int main(int count, char **arguments)
{
    (void)count;
    return RUN_CASES(cases, arguments + 1);
}
