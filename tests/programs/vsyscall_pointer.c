/* what: a vsyscall with a bad pointer raises SIGSEGV
 * build: -O1
 * differs: the emulation answers EFAULT
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
    long (*time_page)(void *) = (long (*)(void *))0xffffffffff600400ul;
    printf("%ld\n", time_page((void *)8));
    return 1;
}
