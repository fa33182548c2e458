/* what: the first thread ends, another one computes until SIGTERM
 * build: -O1 -pthread
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t is_over;
static pthread_t first;

static void end(int signal)
{
    (void)signal;
    is_over = 1;
}

static void *run(void *unused)
{
    unsigned long value = 1;
    pthread_join(first, NULL);
    /* Joined, it may still be on its way out of the kernel's lists: its status says so. */
    usleep(20000);
    puts("ready");
    fflush(stdout);
    while (!is_over)
        value = value * 3 + 1;
    puts(value ? "good" : "bad");
    fflush(stdout);
    exit(value == 0);
    return unused;
}

int main(void)
{
    pthread_t thread;
    signal(SIGTERM, end);
    first = pthread_self();
    pthread_create(&thread, NULL, run, NULL);
    pthread_exit(NULL);
}
