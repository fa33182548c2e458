/* what: a fast timer against calls that block and are woken: futex, semaphores, pipes between threads, nanosleep; nothing is lost
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 400 };

static atomic_int turn, handled;
static int there[2], back[2];
static sem_t ping, pong;

static void handler(int number)
{
    (void)number;
    atomic_fetch_add(&handled, 1);
}

static void await(int value)
{
    for (int seen; (seen = atomic_load(&turn)) != value;)
        syscall(SYS_futex, &turn, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static void pass(int value)
{
    atomic_store(&turn, value);
    syscall(SYS_futex, &turn, FUTEX_WAKE, 10, NULL, NULL, 0);
}

static void *partner(void *nothing)
{
    unsigned char byte;
    for (int i = 0; i < ROUNDS; i++) {
        await(1);
        pass(0);
        while (read(there[0], &byte, 1) != 1)
            ;
        byte ^= 0x55;
        while (write(back[1], &byte, 1) != 1)
            ;
        while (sem_wait(&ping) != 0)
            ;
        sem_post(&pong);
    }
    return nothing;
}

int main(void)
{
    pthread_t thread;
    unsigned long sum = 0;
    if (pipe(there) != 0 || pipe(back) != 0)
        return 1;
    sem_init(&ping, 0, 0);
    sem_init(&pong, 0, 0);
    for (int round = 0; round < 2; round++) {
        sigaction(SIGALRM, &(struct sigaction){.sa_handler = handler, .sa_flags = round ? SA_RESTART : 0}, NULL);
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 300}, {0, 300}}, NULL);
        pthread_create(&thread, NULL, partner, NULL);
        for (int i = 0; i < ROUNDS; i++) {
            unsigned char byte = (unsigned char)i;
            pass(1);
            await(0);
            while (write(there[1], &byte, 1) != 1)
                ;
            while (read(back[0], &byte, 1) != 1)
                ;
            sum = sum * 31 + byte;
            sem_post(&ping);
            while (sem_wait(&pong) != 0)
                ;
            struct timespec left = {0, 20000};
            while (i % 20 == 0 && nanosleep(&left, &left) != 0 && errno == EINTR)
                ;
        }
        pthread_join(thread, NULL);
        while (atomic_load(&handled) < 10)
            ;
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
        printf("sum %lx, interrupted %d\n", sum, atomic_load(&handled) >= 10);
        atomic_store(&handled, 0);
    }
    return 0;
}
