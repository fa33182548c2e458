/* what: restartable sequences in a process, in its child and in the child's: each is aborted by signals of its own
 * build: -O1
 */
#define _GNU_SOURCE
#include "rseq_note.h"
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int ticks;

static void tick(int number)
{
    (void)number;
    ticks++;
}

__attribute__((noinline)) static int spin(struct rseq *area)
{
    __asm__ volatile goto(RSEQ_TABLE RSEQ_ANNOUNCE("%[area]") "1: mov 4(%[area]), %%eax\n test %%eax, %%eax\n js 2f\n jmp 1b\n 2:\n"
                          RSEQ_ABORT("%l[aborted]")
                          :
                          : [area] "r"(area)
                          : "rax", "memory", "cc"
                          : aborted);
    return 0;
aborted:
    return 1;
}

static void run(const char *who)
{
    struct itimerval timer = {{0, 500}, {0, 500}};
    int aborts = 0, rounds = 0;
    ticks = 0;
    setitimer(ITIMER_REAL, &timer, NULL);
    for (; ticks < 5; rounds++)
        aborts += spin(rseq_area());
    timer.it_value.tv_usec = 0;
    setitimer(ITIMER_REAL, &timer, NULL);
    printf("%s: %s\n", who, aborts == rounds ? "all aborted" : "not all aborted");
    fflush(stdout);
}

int main(void)
{
    static const char *const names[] = {"parent", "child", "grandchild"};
    signal(SIGALRM, tick);
    for (int i = 0; i < 3; i++) {
        run(names[i]);
        if (i == 2)
            return 0;
        pid_t child = fork();
        if (child != 0) {
            int status;
            while (waitpid(child, &status, 0) < 0)
                ;
            return status != 0;
        }
    }
}
