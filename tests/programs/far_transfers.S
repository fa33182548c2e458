# what: far calls and jumps through memory, far returns that drop arguments, pushed far addresses, in 64-bit code
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    mov r12d, 2
    mov r14, rsp
again:
    mov eax, cs
    mov [rip + pointer + 4], ax
    mov [rip + pointer_jump + 4], ax
    lea rax, [rip + far_callee]
    mov [rip + pointer], eax
    xor r13d, r13d
    call fword ptr [rip + pointer]
    SHOW after_call, r13
    lea rax, [rip + 1f]
    mov [rip + pointer_jump], eax
    jmp fword ptr [rip + pointer_jump]
    EXIT 1
1:  add r13, 100
    push 7
    push 8
    mov ecx, cs
    push rcx
    lea rax, [rip + 2f]
    push rax
    retfq 16
    EXIT 2
2:  SHOW after_return, r13
    mov rbx, r14
    sub rbx, rsp
    SHOW stack, rbx
    mov ecx, cs
    push rcx
    lea rax, [rip + 3f]
    push rax
    mov ebx, 4
    add ebx, 0x7ffffffc             # overflow, live over the return
    retfq
    EXIT 3
3:  seto bl
    movzx ebx, bl
    SHOW overflow, rbx
    dec r12d
    jnz again
    EXIT 0
far_callee:
    inc r13
    .byte 0xcb                      # retf with 32-bit operands, as the far call pushed them
SHOW_ROUTINE
.data
pointer: .space 16
pointer_jump: .space 16
