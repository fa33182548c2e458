# what: indirect jumps and calls through every kind of operand: registers, scaled tables, absolute and rip-relative memory
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    mov r12d, 9
    xor r13d, r13d
again:
    .irp register, rax, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r14, r15
    lea \register, [rip + add_one]
    call \register
    lea \register, [rip + 1f]
    jmp \register
    EXIT 1
1:
    .endr
    mov ebx, r12d
    and ebx, 3
    lea rdi, [rip + table]
    call [rdi + rbx * 8]
    call [table + rbx * 8]
    call [table]
    call [rip + table + 8]
    lea r14, [rdi + 8]
    call [r14 + 8]
    mov r15d, 1
    call [r14 + r15 * 8 + 8]
    shl ebx, 3
    call [rdi + rbx + 0]
    xchg rsp, rdi                  # rsp as the table's base: the pushed address lands before it
    lea rsp, [rsp + 16]
    mov rax, [rsp - 8]
    call [rsp - 16]
    mov [rsp - 8], rax
    mov rsp, rdi
    push fs
    pop rax
    bnd jmp 1f
1:  bnd call add_one
    lea rax, [rip + 1f]
    notrack jmp rax
1:  lea rax, [rip + bnd_one]
    bnd call rax
    dec r12d
    jnz again
    SHOW sum, r13
    EXIT 0
add_one:
    inc r13
    ret
bnd_one:
    endbr64
    inc r13
    bnd ret
add_16:
    add r13, 16
    rep ret
add_256:
    add r13, 256
    ret
add_4096:
    add r13, 4096
    ret
SHOW_ROUTINE
.data
    .quad 0
table: .quad add_one, add_16, add_256, add_4096
