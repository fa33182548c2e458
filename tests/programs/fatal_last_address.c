/* what: a jump to the last address of all ends the program
 * build: -O1
 * status: SIGSEGV
 */
#include <stdint.h>
#include <stdio.h>

int main(void)
{
    puts("before");
    fflush(stdout);
    volatile uintptr_t last = UINTPTR_MAX;
    ((void (*)(void))last)();
    return 0;
}
