# what: a jump that skips a lock prefix, so that the same instruction runs with and without it
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    mov ebx, 6
    lea rdi, [rip + cell]
again:
    test ebx, 1
    jz 1f + 1
1:  lock add qword ptr [rdi], 3
    dec ebx
    jnz again
    mov rax, [rip + cell]
    SHOW cell, rax
    EXIT 0
SHOW_ROUTINE
.data
cell: .quad 0
