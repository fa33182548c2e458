/* System calls, signals and faults, so many of each in each thread.
 *
 * Arguments: how many; and threads. Exits with 1 if a handler did not run as often.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static volatile long n_signals, n_faults;
static long n;

static void on_signal(int signal)
{
    (void)signal;
    __atomic_add_fetch(&n_signals, 1, __ATOMIC_RELAXED);
    syscall(SYS_getuid);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    __atomic_add_fetch(&n_faults, 1, __ATOMIC_RELAXED);
    /* Over the load, which is movb (%rax), %al. */
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static void *run(void *ignored)
{
    for (long i = 0; i < n; i++) {
        syscall(SYS_getppid);
        pthread_kill(pthread_self(), SIGUSR1);
        __asm__ volatile("xor %%eax, %%eax\n.globl faulting\nfaulting: movb (%%rax), %%al" : : : "rax", "memory");
    }
    return ignored;
}

int main(int argc, char **argv)
{
    struct sigaction on = {.sa_handler = on_signal}, fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    pthread_t threads[16];
    int n_threads = argc > 2 ? atoi(argv[2]) : 1;
    n = atol(argv[1]);
    sigaction(SIGUSR1, &on, NULL);
    sigaction(SIGSEGV, &fault, NULL);
    for (int i = 1; i < n_threads && i < 16; i++)
        if (pthread_create(&threads[i], NULL, run, NULL))
            return 1;
    run(NULL);
    for (int i = 1; i < n_threads && i < 16; i++)
        pthread_join(threads[i], NULL);
    return n_signals != n * n_threads || n_faults != n * n_threads;
}
