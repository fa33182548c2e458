# what: far returns and iretq inside the same code segment
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    mov r12d, 3
    xor r13d, r13d
again:
    lea rax, [rip + 1f]
    mov ecx, cs
    push rcx
    push rax
    retfq
    EXIT 1
1:  inc r13
    mov rdx, rsp
    mov ecx, ss
    push rcx
    push rdx
    pushfq
    mov ecx, cs
    push rcx
    lea rax, [rip + 1f]
    push rax
    iretq
    EXIT 2
1:  add r13, 16
    dec r12d
    jnz again
    SHOW sum, r13
    EXIT 0
SHOW_ROUTINE
