/* what: siglongjmp out of handlers, of faults and of raised signals, many times; the mask comes back
 * build: -O1
 * traits: oracle
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static sigjmp_buf buffer;
static void handler(int number) { siglongjmp(buffer, number); }

int main(void)
{
    struct sigaction action;
    volatile int sum = 0;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGFPE, &action, NULL);
    for (volatile int i = 0; i < 60; i++) {
        int got = sigsetjmp(buffer, 1);
        if (got != 0) {
            sum += got;
            continue;
        }
        switch (i % 3) {
        case 0: *(volatile int *)(long)(i * 8) = 1; break;
        case 1: raise(SIGUSR1); break;
        case 2: __asm__ volatile("xor %%ecx, %%ecx\n xor %%edx, %%edx\n div %%ecx" ::: "eax", "ecx", "edx", "cc"); break;
        }
    }
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    printf("%d %d\n", sum, sigismember(&mask, SIGUSR1) + sigismember(&mask, SIGSEGV));
    return 0;
}
