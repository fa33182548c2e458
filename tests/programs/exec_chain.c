/* what: a program that executes itself three times with other arguments, then another program
 * build: -O1
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int left = argc > 1 ? atoi(argv[1]) : 3;
    char number[16];
    printf("%d left\n", left);
    fflush(stdout);
    if (left == 0) {
        execl("/bin/sh", "sh", "-c", "echo last; exit 0", NULL);
        return 1;
    }
    snprintf(number, sizeof number, "%d", left - 1);
    execl("/proc/self/exe", argv[0], number, NULL);
    return 2;
}
