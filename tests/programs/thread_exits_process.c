/* what: a thread other than the first calls exit while the first sleeps and another computes
 * build: -O2 -pthread
 * status: 7
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile unsigned long spinning;
static void *spin(void *argument)
{
    (void)argument;
    for (;;)
        spinning++;
}
static void *leave(void *argument)
{
    (void)argument;
    while (spinning < 100000)
        ;
    puts("leaving");
    exit(7);
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, spin, NULL);
    pthread_create(&two, NULL, leave, NULL);
    for (;;)
        pause();
}
