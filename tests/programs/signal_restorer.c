/* what: the restorer: one of the program's own, none (the frame can't be built: SIGSEGV), and a handler that returns elsewhere
 * build: -O1 -fno-stack-protector
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include "note.h"

struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

int restored;
static sigjmp_buf back;

void own_restorer(void);
__asm__(".text\n.globl own_restorer\n.type own_restorer, @function\nown_restorer:\n"
        " incl restored(%rip)\n mov $15, %eax\n syscall\n ud2\n");

static void handler(int number) { note("handler", number); }

static void on_segv(int number, siginfo_t *info, void *context)
{
    (void)context;
    note("forced", number);
    note("code", info->si_code);
    note("address", (long)info->si_addr);
    siglongjmp(back, 1);
}

static void set(void *with, unsigned long flags)
{
    struct kernel_action action = {handler, flags, with, 0};
    note("set", syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8));
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < 3; i++) {
        set(own_restorer, 0x04000000);
        raise(SIGUSR1);
        note("restored", restored);
        set(own_restorer, 0);
        if (sigsetjmp(back, 1) == 0) {
            raise(SIGUSR1);
            note("not here", 1);
        }
        note("restored", restored);
        set(NULL, 0);
        if (sigsetjmp(back, 1) == 0)
            raise(SIGUSR1);
        set(NULL, 0x04000000);
        if (sigsetjmp(back, 1) == 0)
            raise(SIGUSR1);              /* the handler runs and returns to address 0 */
    }
    return 0;
}
