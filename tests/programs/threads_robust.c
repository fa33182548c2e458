/* what: threads that end while they hold robust mutexes, by exit, return and raw exit; cancelled ones, their cleanup, barriers
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock;
static atomic_int cleaned, waiting;

static void clean(void *by) { cleaned += (int)(long)by; }

static void *leave(void *how)
{
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(clean, (void *)1);
    if ((long)how == 1)
        pthread_exit((void *)7);
    if ((long)how == 2)
        syscall(SYS_exit, 0);
    pthread_cleanup_pop(0);
    return (void *)8;
}

static void *wait_for_ever(void *how)
{
    char byte;
    int tube[2];
    if (pipe(tube) != 0)
        return NULL;
    pthread_cleanup_push(clean, (void *)100);
    waiting = 1;
    if ((long)how == 0)
        (void)!read(tube[0], &byte, 1);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (volatile unsigned x = 1;;)
        x = x * 3 + 1;
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&lock, &attributes);
    for (long how = 0; how < 6; how++) {
        pthread_t thread;
        void *result = NULL;
        pthread_create(&thread, NULL, leave, (void *)(how % 3));
        pthread_join(thread, &result);
        int error = pthread_mutex_lock(&lock);
        printf("%ld: result %ld, lock %s, cleaned %d\n", how, how % 3 == 2 ? 0 : (long)result, error ? strerrorname_np(error) : "0", (int)cleaned);
        pthread_mutex_consistent(&lock);
        pthread_mutex_unlock(&lock);
    }
    for (long how = 0; how < 4; how++) {
        pthread_t thread;
        void *result = NULL;
        waiting = 0;
        pthread_create(&thread, NULL, wait_for_ever, (void *)(how % 2));
        while (!waiting)
            ;
        pthread_cancel(thread);
        pthread_join(thread, &result);
        printf("cancelled %d, cleaned %d\n", result == PTHREAD_CANCELED, (int)cleaned);
    }
    return 0;
}
