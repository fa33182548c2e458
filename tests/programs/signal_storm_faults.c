/* what: signals, among them sent SIGSEGVs, hit a thread that faults all the time: masks in frames, in handlers, after them are right
 * build: -O1 -pthread -fno-stack-protector
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { FAULTS = 12000 };

static atomic_int handled, faults, finished;
static atomic_long wrong_frame, wrong_handler, wrong_after;
static pthread_t target;

static uint64_t present_mask(void)
{
    uint64_t mask = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &mask, 8);
    return mask;
}

static uint64_t bit(int number) { return (uint64_t)1 << (number - 1); }

/* Both signals block SIGHUP. Neither blocks the other, so they interrupt each other and the faults' handler. */
static void on_signal(int number, siginfo_t *info, void *opaque)
{
    (void)info;
    uint64_t before;
    memcpy(&before, &((ucontext_t *)opaque)->uc_sigmask, 8);
    wrong_handler += present_mask() != (before | bit(number) | bit(SIGHUP));
    atomic_fetch_add(&handled, 1);
}

static void on_fault(int number, siginfo_t *info, void *opaque)
{
    ucontext_t *context = opaque;
    uint64_t before;
    memcpy(&before, &context->uc_sigmask, 8);
    if (info->si_code <= 0) {
        wrong_handler += present_mask() != (before | bit(number) | bit(SIGTERM));
        return;
    }
    wrong_frame += before != 0 || (uintptr_t)info->si_addr != 8;
    wrong_handler += present_mask() != (bit(number) | bit(SIGTERM));
    context->uc_mcontext.gregs[REG_RIP] += 3;
    faults++;
}

static void *send(void *argument)
{
    (void)argument;
    for (int i = 0; !atomic_load(&finished); i += 2) {
        pthread_sigqueue(target, SIGRTMIN, (union sigval){.sival_int = i});
        pthread_sigqueue(target, SIGSEGV, (union sigval){.sival_int = i});
        pthread_sigqueue(target, SIGRTMIN + 1, (union sigval){.sival_int = i});
        /* No more than three at a time: the thread must come to its next fault. */
        int before = faults;
        while (atomic_load(&handled) < i + 2 || (faults == before && !atomic_load(&finished)))
            ;
    }
    return NULL;
}

int main(int count, char **words)
{
    int limit = count > 1 ? atoi(words[1]) : FAULTS;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = on_signal;
    sigaddset(&action.sa_mask, SIGHUP);
    sigaction(SIGRTMIN, &action, NULL);
    sigaction(SIGRTMIN + 1, &action, NULL);
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGTERM);
    action.sa_sigaction = on_fault;
    sigaction(SIGSEGV, &action, NULL);
    target = pthread_self();
    pthread_t sender;
    pthread_create(&sender, NULL, send, NULL);
    while (!atomic_load(&handled))
        sched_yield();
    while (faults < limit) {
        __asm__ volatile("movq (%0), %0" : : "a"((uintptr_t)8) : "memory");
        wrong_after += present_mask() != 0;
    }
    atomic_store(&finished, 1);
    pthread_join(sender, NULL);
    printf("faults %d, some signals %d, wrong in frames %ld, in handlers %ld, after %ld\n", faults, handled > 0,
           wrong_frame, wrong_handler, wrong_after);
    return 0;
}
