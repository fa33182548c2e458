/* Static probes (USDT), with notes written as sys/sdt.h writes them; the third one's as if its section had been moved. */
#include <stdint.h>
#include <stdio.h>

#define NOTE(provider, name, semaphore, moved, arguments)                                                              \
    ".pushsection .note.stapsdt, \"\", \"note\"\n"                                                                     \
    ".balign 4\n"                                                                                                      \
    ".4byte 992f-991f, 994f-993f, 3\n"                                                                                 \
    "991: .asciz \"stapsdt\"\n"                                                                                        \
    "992: .balign 4\n"                                                                                                 \
    "993: .8byte 990b+" moved ", _.stapsdt.base+" moved ", " semaphore "\n"                                            \
    ".asciz \"" provider "\"\n"                                                                                        \
    ".asciz \"" name "\"\n"                                                                                            \
    ".asciz \"" arguments "\"\n"                                                                                       \
    "994: .balign 4\n"                                                                                                 \
    ".popsection\n"

__attribute__((used, section(".probes"))) unsigned short first_semaphore;
__attribute__((used)) static int shelf[4] = {1, 2, 3, 4};

__asm__(".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"
        ".weak _.stapsdt.base\n"
        ".hidden _.stapsdt.base\n"
        "_.stapsdt.base: .space 1\n"
        ".size _.stapsdt.base, 1\n"
        ".popsection\n");

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
