/* Threads that compute with integer and vector registers while a timer's handler counts; functions that nobody calls but a
 * debugger. Writes what it came to, which must be the same whatever is called meanwhile. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile uint64_t n_ticks;
volatile int n_called, is_over, n_working;
static int n_rounds = 100000;
static void on_tick(int number) { (void)number; n_ticks++; }

__attribute__((noipa, used)) long mix(long a, long b, long c, long d, long e, long f)
{
    n_called++;
    return a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f;
}
__attribute__((noipa, used)) double scale(double x, int n, double y) { n_called++; return x * n + y; }
__attribute__((noipa, used)) size_t length(const char *text) { n_called++; return strlen(text); }
__attribute__((noipa, used)) int format(char *into, double x, int n) { return sprintf(into, "%.2f and %d", x, n); }
__attribute__((noipa, used)) int deeper(int n) { return n == 0 ? 0 : 1 + deeper(n - 1); }
__attribute__((noipa, used)) void forever(void) { while (!is_over) ; }

__attribute__((noipa)) static double compute(int n)
{
    double a = 1, b = 2, c = 3, d = 4;
    for (int i = 1; i <= n; i++) {
        a += b / i;
        b = b * 0.999 + c;
        c = c * 0.5 + d / (i + 1.0);
        d = d * 0.25 + a * 1e-6;
    }
    return a + b + c + d;
}

static void *work(void *argument)
{
    double *into = argument;
    __atomic_fetch_add(&n_working, 1, __ATOMIC_SEQ_CST);
    *into = 0;
    for (int i = 0; i < n_rounds; i++)
        *into += compute(200000);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        n_rounds = atoi(argv[1]);
    struct sigaction action = { .sa_handler = on_tick, .sa_flags = SA_RESTART };
    struct itimerval often = { { 0, 2000 }, { 0, 2000 } };
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &often, 0);
    pthread_t thread;
    double first, second;
    pthread_create(&thread, 0, work, &second);
    work(&first);
    pthread_join(thread, 0);
    while (argc > 2 && !is_over)
        usleep(1000);
    printf("%.17g %.17g %d\n", first, second, n_called);
    return 0;
}
