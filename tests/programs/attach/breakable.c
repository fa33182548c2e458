/* what: a thread that calls one function and nothing else; says when that began to trap, and when it does so no more
 * build: -O1 -pthread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { TRAPS = 3, CALLS = 10000, SECONDS = 30 };

static volatile long traps, calls;
static volatile int is_over;

/* Its first instruction is one byte long, and does nothing: a breakpoint's trap comes back behind it. */
void function(void);
__asm__(".globl function\n"
        "function: nop\n"
        "incq n_entered(%rip)\n"
        "ret\n"
        ".lcomm n_entered, 8\n");

static void on_trap(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info, (void)context;
    traps++;
}

static void *call(void *argument)
{
    while (!is_over) {
        function();
        calls++;
    }
    return argument;
}

/* Waits until there were so many more traps, or so many calls without one. */
static int wait_for(int is_trapping)
{
    time_t end = time(NULL) + SECONDS;
    long traps_before = traps, calls_before = calls;
    while (is_trapping ? traps < traps_before + TRAPS : calls < calls_before + CALLS) {
        if (!is_trapping && traps != traps_before)
            traps_before = traps, calls_before = calls;
        if (time(NULL) > end)
            return 0;
        usleep(1000);
    }
    return 1;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, call, NULL);
    wait_for(0);
    printf("ready %p\n", (void *)function);
    fflush(stdout);
    char line[16];
    while (fgets(line, sizeof line, stdin) != NULL) {
        int is_trapping = line[0] == 't';
        puts(wait_for(is_trapping) ? is_trapping ? "traps" : "free" : "late");
        fflush(stdout);
    }
    is_over = 1;
    pthread_join(thread, NULL);
    return 0;
}
