# what: push of an address and ret, used as a jump, also to an address that no call announced and to many in a row
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    mov r12d, 5
    xor r13d, r13d
again:
    lea rax, [rip + 1f]
    push rax
    ret
    EXIT 1
1:  inc r13
    lea rax, [rip + third]
    push rax
    lea rax, [rip + second]
    push rax
    lea rax, [rip + first]
    push rax
    ret                            # a chain of gadgets
first:
    add r13, 16
    ret
second:
    add r13, 256
    ret
third:
    add r13, 4096
    dec r12d
    jnz again
    SHOW sum, r13
    EXIT 0
SHOW_ROUTINE
