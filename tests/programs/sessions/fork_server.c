/* A server that has each request answered by a child: what children execute the parent never does.
 *
 * Argument: how many requests. Prints what all answers come to.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEP(n)                                                                                                        \
    __attribute__((noinline)) static int step_##n(int value)                                                           \
    {                                                                                                                  \
        return value % (n + 2) ? value * n + 1 : value / 2;                                                            \
    }
#define TEN(d) STEP(d##0) STEP(d##1) STEP(d##2) STEP(d##3) STEP(d##4) STEP(d##5) STEP(d##6) STEP(d##7) STEP(d##8) STEP(d##9)
TEN(1) TEN(2) TEN(3) TEN(4) TEN(5)

#define CALL(n) value = step_##n(value);
#define CALL_TEN(d) CALL(d##0) CALL(d##1) CALL(d##2) CALL(d##3) CALL(d##4) CALL(d##5) CALL(d##6) CALL(d##7) CALL(d##8) CALL(d##9)

__attribute__((noinline)) int answer(int value)
{
    CALL_TEN(1) CALL_TEN(2) CALL_TEN(3) CALL_TEN(4) CALL_TEN(5)
    return value;
}

__attribute__((noinline)) void serve(void) { __asm__ volatile(""); }

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1, total = 0;
    serve();
    for (int number = 0; number < n; number++) {
        pid_t child = fork();
        if (child == 0)
            _exit(answer(number) & 15);
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child)
            return 1;
        total += WEXITSTATUS(status);
    }
    printf("%d\n", total);
    return 0;
}
