/* what: abort, after output that was not flushed
 * build: -O1
 * status: SIGABRT
 */
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    fputs("on stderr\n", stderr);
    puts("flushed");
    fflush(stdout);
    printf("not flushed");
    abort();
}
