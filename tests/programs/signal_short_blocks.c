/* what: an alarm that comes inside blocks of one indirect jump, or of one return, is delivered at once
 * build: -O1
 */
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
static volatile int run;
static void on_alarm(int number) { (void)number; run = 0; }
void stub(void);
void *destination;
__asm__(".text\n.globl stub\nstub: jmp *destination(%rip)\n.globl only_return\nonly_return: ret\n");
void only_return(void);
int main(void)
{
    destination = (void *)only_return;
    signal(SIGALRM, on_alarm);
    for (int i = 0; i < 2000; i++) {
        run = 1;
        struct itimerval soon = {{0, 0}, {0, 100 + i * 37 % 400}};
        setitimer(ITIMER_REAL, &soon, 0);
        while (run)
            for (int n = 0; n < 50; n++)
                stub();
    }
    puts("delivered");
}
