/* what: an instruction of 16 bytes faults with SIGSEGV, not SIGILL
 * build: -O1
 * differs: what the decoder refuses becomes ud2
 */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void on_fault(int number)
{
    printf("signal %d\n", number);
    fflush(stdout);
    _exit(0);
}

int main(void)
{
    signal(SIGSEGV, on_fault);
    signal(SIGILL, on_fault);
    asm volatile(".fill 15, 1, 0x66\n\t.byte 0x90");
    return 1;
}
