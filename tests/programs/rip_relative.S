# what: rip-relative operands of every kind: integer, with immediates, SSE, locked, string of prefixes, at the code's distance
# build: -nostdlib -static-pie
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    mov r12d, 4
    xor r13d, r13d
again:
    lea rax, [rip + cell]
    lea rcx, [rip + 1f]
1:  sub rax, rcx
    lea ecx, [rip + cell]
    mov eax, [rip + cell]
    add r13, rax
    movzx eax, byte ptr [rip + cell + 1]
    add r13, rax
    movsx rax, word ptr [rip + cell + 2]
    add r13, rax
    movsxd rax, dword ptr [rip + cell + 4]
    add r13, rax
    mov dword ptr [rip + other], 0x12345678
    mov qword ptr [rip + other + 8], -3
    mov word ptr [rip + other + 4], 0x4321
    mov byte ptr [rip + other + 6], 0x56
    add qword ptr [rip + other], 0x11
    sub word ptr [rip + other + 4], 0x1234
    add r13, [rip + other]
    cmp dword ptr [rip + other], 0x12345689
    jne wrong
    cmp byte ptr [rip + other + 6], 0x55
    setg al
    movzx eax, al
    add r13, rax
    test dword ptr [rip + cell], 0x01000000
    setnz byte ptr [rip + other + 7]
    imul rax, [rip + cell], 3
    add r13, rax
    imul eax, [rip + cell], 0x12345
    add r13, rax
    shl qword ptr [rip + other]
    shl qword ptr [rip + other], 3
    mov cl, 2
    ror qword ptr [rip + other], cl
    shld [rip + other], rax, 5
    bt dword ptr [rip + cell], 5
    adc r13, 0
    bts qword ptr [rip + other + 8], 2
    add r13, [rip + other]
    xchg [rip + other], rax
    lock xadd [rip + other], rax
    lock cmpxchg [rip + other], rcx
    lock add dword ptr [rip + other + 8], 0x7000000
    lock cmpxchg16b [rip + sixteen]
    add r13, [rip + other + 8]
    neg qword ptr [rip + other]
    not dword ptr [rip + other]
    mul qword ptr [rip + cell]
    add r13, rdx
    xor edx, edx
    div dword ptr [rip + cell]
    add r13, rdx
    cmovnz rax, [rip + cell]
    push [rip + cell]
    pop [rip + other]
    add r13, [rip + other]
    bsf rax, [rip + cell]
    popcnt rcx, [rip + cell]
    crc32 rcx, qword ptr [rip + cell]
    add r13, rcx
    movbe rax, [rip + cell]
    add r13, rax

    movdqu xmm0, [rip + sixteen]
    paddq xmm0, [rip + sixteen]
    pshufd xmm1, [rip + sixteen], 0x4e
    movss xmm2, [rip + number]
    cvtss2sd xmm3, [rip + number]
    mulsd xmm3, [rip + double]
    roundsd xmm4, [rip + double], 1
    pinsrd xmm1, [rip + cell], 2
    pextrd [rip + other], xmm1, 3
    pcmpistri xmm0, [rip + sixteen], 12
    add r13, rcx
    movq rax, xmm3
    add r13, rax
    cvttsd2si rax, [rip + double]
    add r13, rax
    cvtsi2sd xmm5, qword ptr [rip + cell]
    movlps [rip + other], xmm5
    add r13, [rip + other]
    movq rax, xmm1
    add r13, rax
    ucomisd xmm3, [rip + double]
    ja 1f
    inc r13
1:
    fld qword ptr [rip + double]
    fadd dword ptr [rip + number]
    fistp qword ptr [rip + other]
    add r13, [rip + other]
    fnstcw [rip + other]
    fldcw [rip + other]
    stmxcsr [rip + other]
    ldmxcsr [rip + other]
    movq mm0, [rip + cell]
    paddb mm0, [rip + cell]
    movq [rip + other], mm0
    emms
    add r13, [rip + other]

    lea rax, [rip + add_one]
    mov [rip + pointer], rax
    call [rip + pointer]
    lea rax, [rip + 1f]
    mov [rip + other], rax
    jmp [rip + other]
wrong:
    EXIT 1
1:  dec r12d
    jnz again
    SHOW sum, r13
    EXIT 0
add_one:
    inc r13
    ret
SHOW_ROUTINE
.data
.balign 16
cell: .quad 0x8877665544332211
other: .quad 0, 0
number: .float 2.5
    .long 0
sixteen: .quad 0x1122334455667788, 0x99aabbccddeeff00
double: .double 1234.75
pointer: .quad 0
