/* A library with thread-local variables, which thread_locals.c loads. */
#include <stdio.h>

static __thread long hidden = 1000;
__thread unsigned short shared = 60000;

__attribute__((noinline, noipa)) void in_library_here(long thread)
{
    printf("in_library_here %ld %ld %u\n", thread, hidden, shared);
}

long in_library(long thread)
{
    hidden += thread;
    shared += (unsigned short)thread;
    in_library_here(thread);
    return hidden;
}
