# what: far returns, iretq and iretd inside the same code segment
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
    # The same with words of 32 bits, on a stack in low memory; the flags that it loads are live behind it.
    mov rbx, rsp
    lea rsp, [rip + low_stack]
    lea rax, [rip + 2f]
    mov [rsp], eax
    mov ecx, cs
    mov [rsp + 4], ecx
    mov dword ptr [rsp + 8], 0x203  # carry
    lea rax, [rip + low_stack + 64]
    mov [rsp + 12], eax
    mov ecx, ss
    mov [rsp + 16], ecx
    clc
    iretd
    EXIT 3
2:  adc r13, 0
    lea rax, [rip + low_stack + 64]
    sub rax, rsp
    add r13, rax
    mov rsp, rbx
    dec r12d
    jnz again
    SHOW sum, r13
    EXIT 0
SHOW_ROUTINE
.bss
    .space 256
low_stack:
    .space 256
