# what: loops of one block that run far over 65,536 times, with live flags, a memory operand and every register in use
# build: -nostdlib -static
# traits: oracle-long
.include "asm.inc"
.globl _start
_start:
    mov ecx, 70001
    xor eax, eax
    stc
NAMED loop_carry_70001               # the carry flag lives through the loop; dec leaves it alone
    adc eax, 0
    dec ecx
    jnz loop_carry_70001
    setc bl
    SHOW carries, rax
    movzx ebx, bl
    SHOW carry, rbx
    mov rcx, 66000
    xor eax, eax
NAMED loop_full_66000                # no register is dead
    add rax, rbx
    add rbx, rdx
    add rdx, rsi
    add rsi, rdi
    add rdi, rbp
    add rbp, r8
    add r8, r9
    add r9, r10
    add r10, r11
    add r11, r12
    add r12, r13
    add r13, r14
    add r14, r15
    add r15, 1
    dec rcx
    jnz loop_full_66000
    SHOW rax, rax
    SHOW r15, r15
    mov ecx, 131073
NAMED loop_memory_131073
    inc qword ptr [rip + cell]
    sub ecx, 1
    ja loop_memory_131073
    mov rax, [rip + cell]
    SHOW memory, rax
    mov ecx, 65537
NAMED loop_itself_65537
    loop loop_itself_65537
    SHOW loop, rcx
    EXIT 0
SHOW_ROUTINE
.data
cell: .quad 0
