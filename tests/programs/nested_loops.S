# what: four nested loops; every loop's count is known from its symbol
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    xor ebx, ebx
    mov r12d, 3
NAMED loop_3                         # runs 3 times
    mov r13d, 7
NAMED loop_21                        # 3 * 7
    mov r14d, 11
NAMED loop_231                       # 3 * 7 * 11
    mov r15d, 101
NAMED loop_23331                     # 3 * 7 * 11 * 101
    add rbx, r15
    dec r15d
    jnz loop_23331
    dec r14d
    jnz loop_231
    dec r13d
    jnz loop_21
    dec r12d
    jnz loop_3
    SHOW sum, rbx
    EXIT 0
SHOW_ROUTINE
