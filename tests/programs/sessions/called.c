/* Functions that sessions look at: by which ways they are called, with what, and what they return.
 *
 * Arguments: how many turns; and threads, if there are more than one. Prints what all of it comes to.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request {
    int kind;
    const char *path;
};

static jmp_buf way_out;

__attribute__((noinline)) long add(long a, long b) { return a + b; }

__attribute__((noinline)) double scale(double value, int by, double more) { return value * by + more; }

__attribute__((noinline)) long sum_of_eight(long a, long b, long c, long d, long e, long f, long g, long h)
{
    return a + b + c + d + e + f + g + h;
}

__attribute__((noinline)) long handle(struct request *request, unsigned char flag)
{
    return (long)strlen(request->path) + request->kind + flag;
}

__attribute__((noinline)) long descend(long depth) { return depth ? descend(depth - 1) + 1 : 0; }

__attribute__((noinline)) long leave(long value)
{
    if (value)
        longjmp(way_out, (int)value);
    return 0;
}

__attribute__((noinline)) long forward(long a, long b) { return add(b, a); }

static long (*volatile by_pointer)(long, long) = add;

static long turn(long number)
{
    struct request request = {(int)number, number % 2 ? "/odd" : "/even"};
    long total = add(number, 1) + forward(number, 2) + by_pointer(number, 3);
    total += (long)scale(1.5, 2, (double)number) + sum_of_eight(1, 2, 3, 4, 5, 6, 7, number);
    return total + handle(&request, 200) + descend(3);
}

static void *run(void *turns)
{
    long total = 0;
    for (long number = 0; number < (long)turns; number++)
        total += turn(number);
    return (void *)total;
}

int main(int argc, char **argv)
{
    long turns = argc > 1 ? atol(argv[1]) : 1, total = 0;
    int n_threads = argc > 2 ? atoi(argv[2]) : 1;
    pthread_t threads[16];
    for (int i = 1; i < n_threads && i < 16; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)turns))
            return 1;
    total = (long)run((void *)turns);
    for (int i = 1; i < n_threads && i < 16; i++) {
        void *one;
        pthread_join(threads[i], &one);
        total += (long)one;
    }
    if (setjmp(way_out) == 0)
        leave(7);
    printf("%ld\n", total);
    return (int)(total % 50);
}
