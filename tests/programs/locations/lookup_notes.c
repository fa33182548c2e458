/* Static probes (USDT), the third one's as if its section had been moved. */
#include <stdint.h>
#include <stdio.h>

#include "../static_probes.h"

__attribute__((used, section(".probes"))) unsigned short first_semaphore;
__attribute__((used)) static int shelf[4] = {1, 2, 3, 4};

__attribute__((noinline)) int first(int n, long large, double real)
{
    __asm__ volatile(
        "probe_first: 990: nop\n" NOTE("shop", "first", "first_semaphore", "0",
                                       "-4@%[n] 8@%[large] 4@$5 -4@$-7 -8@%[real] 8f@%%xmm0 -4@shelf+4(%%rip) 2@%%dx")
        ::[n] "r"(n), [large] "m"(large), [real] "m"(real), "x"(real));
    return n + (int)large;
}

__attribute__((noinline)) int second(const char *text)
{
    __asm__ volatile("probe_second: 990: nop\n" NOTE("shop", "second", "0", "0", "") ::"r"(text));
    __asm__ volatile("probe_moved: 990: nop\n" NOTE("store", "moved", "0", "0x140", "1@%%ah 8@-16(%%rbp,%%rcx,8)")
                     ::"r"(text));
    return text[0];
}

int main(int argc, char **argv)
{
    printf("%d %d\n", first(argc, 3, 2.5), second(argv[0]));
    return 0;
}
