/* what: a thread that takes a far return, which is not followed, then handles signals on its alternate stack; SIGTERM ends
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t is_over, is_done, n_handled, n_bad, is_wanted, is_far;
static char *stack;

static void end(int signal)
{
    (void)signal;
    is_over = 1;
}

static void handle(int signal)
{
    stack_t now;
    (void)signal;
    sigaltstack(NULL, &now);
    n_bad += now.ss_sp != stack || now.ss_flags != SS_ONSTACK || (char *)&now < stack || (char *)&now > stack + 65536;
    n_handled++;
}

static void *run(void *unused)
{
    stack = aligned_alloc(4096, 65536);
    stack_t alternate = {.ss_sp = stack, .ss_size = 65536};
    sigaltstack(&alternate, NULL);
    while (!is_wanted)
        ;
    __asm__ volatile("mov %%cs, %%eax\n push %%rax\n lea 1f(%%rip), %%rax\n push %%rax\n lretq\n 1:" : : : "rax", "memory");
    is_far = 1;
    while (!is_done)
        ;
    return unused;
}

static void want(int signal)
{
    (void)signal;
    is_wanted = 1;
}

int main(void)
{
    pthread_t thread;
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
    signal(SIGTERM, end);
    signal(SIGUSR2, want);
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, run, NULL);
    puts("ready");
    fflush(stdout);
    while (!is_far)
        usleep(1000);
    puts("far");
    fflush(stdout);
    while (!is_over)
        usleep(1000);
    for (int i = 0; i < 10; i++) {
        int before = n_handled;
        pthread_kill(thread, SIGUSR1);
        while (n_handled == before)
            usleep(1000);
    }
    is_done = 1;
    pthread_join(thread, NULL);
    puts(n_bad ? "bad" : "good");
    return n_bad != 0;
}
