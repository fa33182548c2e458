/* what: the first thread ends before the others; the process ends when the last one does
 * build: -O2 -pthread
 */
#include <pthread.h>
#include <stdlib.h>
#include "note.h"

static pthread_t first;

static void *work(void *argument)
{
    pthread_join(first, NULL);
    note("the first thread is gone", (long)argument);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    first = pthread_self();
    if (pthread_create(&thread, NULL, work, (void *)5) != 0)
        return 1;
    pthread_detach(thread);
    note("leaving", 1);
    pthread_exit(NULL);
}
