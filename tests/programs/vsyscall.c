/* what: a call of the old vsyscall page's time; where the kernel has none, the program says so
 * build: -O1
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

int main(void)
{
    char line[512];
    int there = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps) != NULL)
        there |= strstr(line, "[vsyscall]") != NULL;
    fclose(maps);
    if (!there) {
        puts("no vsyscall page");
        return 0;
    }
    time_t (*old_time)(time_t *) = (time_t (*)(time_t *))0xffffffffff600400ul;
    time_t got = old_time(NULL);
    printf("%d\n", got - time(NULL) <= 1);
    return 0;
}
