/* Says of each signal that comes who sent it, how, and with which value; ends with the third. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile int handled;

static void handle(int number, siginfo_t *info, void *context)
{
    char line[80];
    (void)context;
    snprintf(line, sizeof line, "%d %d %d %d\n", number, info->si_code, info->si_pid, info->si_value.sival_int);
    if (write(1, line, strlen(line)) > 0)
        handled++;
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGRTMIN, &action, NULL);
    alarm(10);
    if (write(1, "ready\n", 6) != 6)
        return 1;
    while (handled < 3)
        continue;
    return 0;
}
