# what: a callee that changes its return address, in place and through a register
# build: -nostdlib -static
# traits: oracle memory
.include "asm.inc"
.globl _start
_start:
    mov r12d, 6
    xor r13d, r13d
again:
    call skip_three
    .byte 0x0f, 0x0b, 0x90         # never run
    inc r13
    call elsewhere
    EXIT 1
landed:
    add r13, 16
    call twice
    add r13, 256
    dec r12d
    jnz again
    SHOW sum, r13
    EXIT 0
skip_three:
    add qword ptr [rsp], 3
    ret
elsewhere:
    lea rax, [rip + landed]
    mov [rsp], rax
    ret
twice:                             # returns two times to the same place
    mov rax, [rsp]
    sub rax, 5
    bts r14, r12
    jc 1f
    mov [rsp], rax                 # the call instruction itself again
1:  ret
SHOW_ROUTINE
