/* what: a thread other than the first executes another program while the others run
 * build: -O1 -pthread
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile unsigned long spinning;
static void *spin(void *argument)
{
    (void)argument;
    for (;;)
        spinning++;
}
static void *replace(void *argument)
{
    (void)argument;
    while (spinning < 1000)
        ;
    execl("/bin/echo", "echo", "replaced", NULL);
    return NULL;
}
int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, spin, NULL);
    pthread_create(&two, NULL, replace, NULL);
    pthread_join(two, NULL);
    return 1;
}
