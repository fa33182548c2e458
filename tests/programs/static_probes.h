/* Notes of static probes (USDT) as sys/sdt.h writes them, of the place that the label `990` is at. `moved`: as if the section of their base had been
 * moved by so much. */
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

__asm__(".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"
        ".weak _.stapsdt.base\n"
        ".hidden _.stapsdt.base\n"
        "_.stapsdt.base: .space 1\n"
        ".size _.stapsdt.base, 1\n"
        ".popsection\n");
