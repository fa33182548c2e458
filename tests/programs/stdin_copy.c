/* what: copies standard input to standard output and counts to standard error; statuses over 127 pass through
 * build: -O2
 * status: 200
 */
#include <stdio.h>
int main(void)
{
    int got;
    long count = 0;
    while ((got = getchar()) != EOF) {
        putchar(got);
        count++;
    }
    fprintf(stderr, "%ld bytes\n", count);
    return 200;
}
