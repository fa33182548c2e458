# what: call to the next instruction and pop, the old way to find one's own address
# build: -nostdlib -static
# traits: oracle memory
.include "asm.inc"
.globl _start
_start:
    mov r12d, 4
    xor r13d, r13d
again:
    call 1f
1:  pop rax
    lea rbx, [rip + 1b]
    sub rax, rbx
    or r13, rax
    call over
    .asciz "text after a call"
over:
    pop rsi
    movzx eax, byte ptr [rsi + 5]
    add r13, rax
    dec r12d
    jnz again
    SHOW sum, r13
    EXIT 0
SHOW_ROUTINE
