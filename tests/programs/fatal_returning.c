/* what: killed while a deep recursion returns: the same block again and again, and no branch between them
 * build: -O1 -pthread -fno-optimize-sibling-calls
 * status: SIGKILL
 */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

enum { DEPTH = 2000, BYTES = 1 << 22 };

static char room[BYTES];
static volatile int is_returning;

/* Behind each return is what takes some tenths of a millisecond; the way there goes straight on. */
static void go_down(int depth)
{
    char *to = room;
    size_t left = sizeof room;
    if (__builtin_expect(depth != 0, 1))
        go_down(depth - 1);
    else
        is_returning = 1;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(left) : "a"(depth) : "memory");
}

static void *run(void *argument)
{
    go_down(DEPTH);
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, run, NULL);
    while (!is_returning)
        usleep(100);
    puts("returning");
    fflush(stdout);
    usleep(10000);
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}
