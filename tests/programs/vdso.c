/* what: the vDSO: clock_gettime, gettimeofday, time, getcpu; its image is where the auxiliary vector says
 * build: -O1
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <time.h>

int main(void)
{
    struct timespec last = {0}, now;
    int forwards = 0;
    for (int i = 0; i < 1000; i++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        forwards += now.tv_sec > last.tv_sec || (now.tv_sec == last.tv_sec && now.tv_nsec >= last.tv_nsec);
        last = now;
    }
    struct timeval day;
    gettimeofday(&day, NULL);
    time_t second = time(NULL);
    unsigned cpu = 9999, node;
    int got = getcpu(&cpu, &node);
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    printf("%d %d %d %d %d\n", forwards, second - day.tv_sec <= 1, day.tv_sec - now.tv_sec <= 1, got, cpu < 9999);
    const char *image = (const char *)getauxval(AT_SYSINFO_EHDR);
    printf("%d\n", image == NULL ? -1 : memcmp(image, "\177ELF", 4));
    return 0;
}
