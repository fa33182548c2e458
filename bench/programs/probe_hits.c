/* Calls a small function many times, in bursts between which it sleeps, so that whoever takes what comes of that keeps up.
 *
 * Arguments: how many bursts, of how many calls; where the text is that the function is given: `stack`, `heap`, or `nowhere`; what is called:
 * `short_function`, or `one_byte`, which has no room for a jump; or `nested`: a function below nine others, of which the innermost eight lie in
 * one page of the stack, or `nested_over`: in two. Waits for a line first. Prints nanoseconds of processor time a call:
 * the median of the bursts.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_UST
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "probe_hits_ust.h"
#endif

/* As compilers begin functions that need a frame: the kernel need not step over its first instruction. */
long short_function(long a, long b, const char *text, long d);
__asm__(".text\n.globl short_function\n.type short_function, @function\nshort_function: pushq %rbp\nmovq %rsp, %rbp\n"
        "leaq (%rdi,%rdi,2), %rax\naddq %rsi, %rax\npopq %rbp\nret\n.size short_function, . - short_function\n");

/* Behind it another function begins, whose bytes lead nowhere as a jump's distance. */
long one_byte(long a, long b, const char *text, long d);
__asm__(".text\n.globl one_byte\n.type one_byte, @function\none_byte: ret\n.size one_byte, 1\n"
        ".globl behind_it\n.type behind_it, @function\nbehind_it: movl $0x90909090, %eax\nret\n.size behind_it, . - behind_it\n");

#ifdef WITH_UST
/* The same function with a tracepoint, which is there whether it is enabled or not. */
static long marked(long a, long b, const char *text, long d)
{
    lttng_ust_tracepoint(clew_bench, hit);
    lttng_ust_tracepoint(clew_bench, values, a, b, text, d);
    return short_function(a, b, text, d);
}
#define short_function marked
#endif

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

__attribute__((noinline)) long nested(long a, long b, const char *text, long d)
{
    __asm__ volatile("" : : "r"(text) : "memory");
    return 3 * a + b - d;
}

static long n_bursts, n_calls, sum;
static const char *text;
static long (*volatile called)(long, long, const char *, long);
static double *times;

__attribute__((noinline)) static void run_bursts(void)
{
    for (long burst = -1; burst < n_bursts; burst++) {
        usleep(2000);
        double start = now_ns();
        for (long i = 0; i < n_calls; i++)
            sum += called(i, 7, text, 9);
        if (burst >= 0)
            times[burst] = (now_ns() - start) / (double)n_calls;
    }
}

__attribute__((noinline)) static void nest(int depth)
{
    if (depth == 0)
        run_bursts();
    else
        nest(depth - 1);
    sum++;
}

/* Below so many bytes of a page of the stack. */
__attribute__((noinline)) static void nest_at(uintptr_t bytes)
{
    volatile char *room = alloca(((uintptr_t)__builtin_frame_address(0) & 4095) + 8192 - bytes);
    *room = 1;
    nest(8);
    *room = 2;
}

int main(int argc, char **argv)
{
    n_bursts = atol(argv[1]), n_calls = atol(argv[2]);
    char own[32] = "0123456789abcdef0123456789abcde";
    text = argc > 3 && !strcmp(argv[3], "heap") ? strdup(own) : own;
    const char *what = argc > 4 ? argv[4] : "";
    called = !strcmp(what, "one_byte") ? one_byte : !strncmp(what, "nested", 6) ? nested : short_function;
    times = calloc((size_t)n_bursts, sizeof *times);
    puts("ready");
    fflush(stdout);
    getchar();
    if (!strcmp(what, "nested"))
        nest_at(3072);
    else if (!strcmp(what, "nested_over"))
        nest_at(160);
    else
        run_bursts();
    qsort(times, (size_t)n_bursts, sizeof *times, compare);
    printf("%.3f %ld\n", times[n_bursts / 2], sum);
    fflush(stdout);
    getchar();
}
