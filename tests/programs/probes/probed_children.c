/* Two threads call a function all the time while the first one makes fifty children, each of which calls it ten times. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int is_over;

__attribute__((noinline)) long work(long a, long b)
{
    __asm__ volatile("" ::: "memory");
    return a * 3 + b;
}

static void *run(void *nothing)
{
    long sum = 0;
    while (!is_over) {
        sum += work(1, 2);
        usleep(50);
    }
    return sum == 1 ? nothing : 0;
}

int main(void)
{
    pthread_t threads[2];
    int sum = 0;
    for (int n = 0; n < 2; n++) pthread_create(&threads[n], 0, run, 0);
    for (int n = 0; n < 50; n++) {
        pid_t child = fork();
        if (!child) {
            long own = 0;
            for (int turn = 0; turn < 10; turn++) own += work(turn, n);
            _exit(own == 135 + 10 * n ? 7 : 1);
        }
        int status;
        waitpid(child, &status, 0);
        sum += WEXITSTATUS(status);
    }
    is_over = 1;
    for (int n = 0; n < 2; n++) pthread_join(threads[n], 0);
    printf("%d\n", sum);
    return sum != 350;
}
