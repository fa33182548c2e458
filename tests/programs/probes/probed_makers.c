/* Threads that make threads without end, which blocks all signals for a moment each time. Arguments: `masks`: they do so themselves, too, and call a
 * function meanwhile; `handler`: a handler that has all signals wait calls it. Says `ready`, and for a line, at the end, how often it was called. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#define N_MAKERS 2

static atomic_int is_over;
static atomic_long n_called;
static int masks;

__attribute__((noipa)) void count(void) { n_called++; }
static void on_alarm(int number) { (void)number; count(); }
static void *nothing(void *argument) { return argument; }

static void *make(void *argument)
{
    sigset_t all, before;
    sigfillset(&all);
    while (!is_over) {
        pthread_t thread;
        if (!pthread_create(&thread, 0, nothing, 0))
            pthread_join(thread, 0);
        if (masks) {
            pthread_sigmask(SIG_SETMASK, &all, &before);
            count();
            pthread_sigmask(SIG_SETMASK, &before, 0);
        }
    }
    return argument;
}

int main(int argc, char **argv)
{
    pthread_t threads[N_MAKERS];
    masks = argc > 1 && !strcmp(argv[1], "masks");
    if (argc > 1 && !strcmp(argv[1], "handler")) {
        struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
        sigfillset(&action.sa_mask);
        sigaction(SIGALRM, &action, 0);
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 500}, {0, 500}}, 0);
    }
    for (int n = 0; n < N_MAKERS; n++) pthread_create(&threads[n], 0, make, 0);
    puts("ready");
    fflush(stdout);
    getchar();
    is_over = 1;
    for (int n = 0; n < N_MAKERS; n++) pthread_join(threads[n], 0);
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, 0);
    printf("%ld\n", n_called);
    return 0;
}
