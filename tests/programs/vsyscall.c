/* what: a call of the old vsyscall page's time, and of addresses there that are no calls; without the page the program says so
 * build: -O1
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>
#include "note.h"

static sigjmp_buf back;

static void handler(int number, siginfo_t *info, void *opaque)
{
    note("signal", number);
    note("code", info->si_code);
    note("pc", (long)((ucontext_t *)opaque)->uc_mcontext.gregs[REG_RIP]);
    siglongjmp(back, 1);
}

int main(void)
{
    char line[512];
    int there = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL)
        there |= strstr(line, "[vsyscall]") != NULL;
    fclose(maps);
    if (!there) {
        puts("no vsyscall page");
        return 0;
    }
    time_t (*old_time)(time_t *) = (time_t (*)(time_t *))0xffffffffff600400ul;
    time_t got = old_time(NULL);
    printf("%d\n", got - time(NULL) <= 1);
    fflush(stdout);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, NULL);
    static const uintptr_t odd[] = {0xffffffffff600001, 0xffffffffff600c00, 0xffffffffff600404};
    for (int i = 0; i < 3; i++)
        if (sigsetjmp(back, 1) == 0)
            ((void (*)(void))odd[i])();
    return 0;
}
