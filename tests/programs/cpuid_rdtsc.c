/* what: cpuid, xgetbv, rdtsc, rdtscp, rdrand and rdpid run as they do alone
 * build: -O1 -mrdrnd
 */
#include <cpuid.h>
#include <stdio.h>
#include <x86intrin.h>

int main(void)
{
    unsigned a, b, c, d, sum = 0;
    __cpuid(0, a, b, c, d);
    printf("%.4s%.4s%.4s\n", (char *)&b, (char *)&d, (char *)&c);
    __cpuid(1, a, b, c, d);
    printf("%x %x %x\n", a, c & 0xf7ffffff, d);
    __cpuid_count(7, 0, a, b, c, d);
    printf("%x %x %x %x\n", a, b, c, d);
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    printf("%x %x\n", low, high);
    unsigned long long last = __rdtsc();
    for (int i = 0; i < 1000; i++) {
        unsigned core;
        unsigned long long now = i & 1 ? __rdtsc() : __rdtscp(&core);
        sum += now >= last;
        last = now;
    }
    printf("%u\n", sum);
    return 0;
}
