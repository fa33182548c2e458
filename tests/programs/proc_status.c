/* what: the kernel's word on which signals have handlers: none of a program that set none
 * build: -O1
 * differs: /proc/self/status shows the handlers that the runtime has for itself
 */
#include <stdio.h>
#include <string.h>

int main(void)
{
    char line[512];
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "SigCgt", 6) == 0)
            fputs(line, stdout);
    return fclose(status);
}
