/* what: fault signals that are sent as crash handlers send them on: with the code of a real fault; blocked ones stay waiting
 * build: -O1
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile int is_real, n;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number, (void)info, (void)context;
    n++;
    if (is_real)
        siglongjmp(back, 1);
}

static void send_to_self(int number)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = number;
    info.si_code = SEGV_MAPERR;
    info.si_addr = (void *)0x42;
    syscall(SYS_rt_tgsigqueueinfo, getpid(), getpid(), number, &info);
}

static void *wait_for_trap(void *set)
{
    struct timespec limit = {5, 0};
    siginfo_t info;
    printf("another thread took %d\n", sigtimedwait(set, &info, &limit));
    return NULL;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < 3; i++)
        send_to_self(SIGSEGV);
    printf("sent: %d\n", n);
    is_real = 1;
    if (!sigsetjmp(back, 1))
        *(volatile int *)8 = 1;
    printf("real: %d\n", n);

    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTRAP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGTRAP);
    printf("new code: %ld\n", strtol("12", NULL, 0));
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_trap, &set);
    pthread_join(thread, NULL);
    return 0;
}
