/* what: a thread other than the first faults: the whole process ends with the signal
 * build: -O1 -pthread
 * status: SIGSEGV
 */
#include <pthread.h>
#include <unistd.h>
#include "note.h"
static void *work(void *argument)
{
    note("in the thread", (long)argument);
    __asm__ volatile("movl $1, 0");
    return NULL;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, (void *)3);
    for (;;)
        pause();
}
