/* what: exit_group while three threads run at full speed
 * build: -O2 -pthread
 * status: 5
 */
#include <pthread.h>
#include <unistd.h>

static volatile unsigned long spinning[3];
static void *spin(void *argument)
{
    volatile unsigned long *cell = argument;
    for (;;)
        (*cell)++;
}

int main(void)
{
    pthread_t thread;
    for (int i = 0; i < 3; i++)
        pthread_create(&thread, NULL, spin, (void *)&spinning[i]);
    for (int i = 0; i < 3; i++)
        while (spinning[i] < 10000)
            ;
    _exit(5);
}
