# what: all the ways in which instructions name memory: stack, strings, segments, vectors, masks, both operands, none done
# build: -nostdlib -static
# traits: memory
.include "asm.inc"
.globl _start
.data
.balign 64
area:   .fill 512, 1, 0x5a
target: .quad landing
callee: .quad routine
masks:  .quad 0x80, 0x8000000000000000
zero:   .fill 64, 1, 0
.text
_start:
    lea rbx, [rip + area]
    mov rcx, 3

    # Plain reads, writes, both; of all sizes, and where the register is overwritten that names the memory.
    mov al, [rbx]
    mov ax, [rbx + 2]
    mov eax, [rbx + rcx*4]
    mov rax, [rbx + rcx*8 + 0x10]
    mov byte ptr [rbx + 1], 7
    mov word ptr [rbx + 6], 0x1234
    mov dword ptr [rbx + 12], 0x12345678
    mov qword ptr [rbx + 0x40], -2
    movzx edx, word ptr [rbx + 6]
    movsx rdx, byte ptr [rbx]
    add qword ptr [rbx + 0x40], 9
    inc byte ptr [rbx + 1]
    neg dword ptr [rbx + 12]
    cmp qword ptr [rbx + 0x40], 7
    test byte ptr [rbx], 1
    mov rsi, rbx
    mov [rbx + 0x80], rbx
    mov rsi, [rsi + 0x80]
    mov r10, rbx
    mov r10, [r10 + 0x40]
    mov r11, rbx
    add [r11 + 0x48], r10
    mov r10d, 2
    mov r11, [r11 + r10*8]
    lea rdx, [rbx + 0x1000]
    nop dword ptr [rax + 0x55]
    prefetcht0 [rbx]

    # Relative to the instruction, absolute, with 32-bit addresses.
    mov rax, [rip + area]
    add qword ptr [rip + area + 8], rax
    mov eax, ebx
    mov eax, [eax + 4]
    mov dword ptr [ebx + 0x20], 3
    mov eax, dword ptr [area]

    # Exchanges.
    xchg rax, [rbx + 0x50]
    lock xadd [rbx + 0x50], rcx
    mov rax, [rbx + 0x58]
    lock cmpxchg [rbx + 0x58], rcx
    xor eax, eax
    lock cmpxchg [rbx + 0x58], rcx
    xor eax, eax
    xor edx, edx
    cmpxchg16b [rbx + 0x60]
    lock inc dword ptr [rbx + 0x70]
    movbe rax, [rbx]
    bt dword ptr [rbx], 5
    bts qword ptr [rbx + 8], 40
    cmove rdx, [rbx + 0x18]
    setne byte ptr [rbx + 0x90]
    shl qword ptr [rbx + 0x98], 3
    imul rdx, [rbx + 0x98]
    mul qword ptr [rbx + 0x98]
    mov qword ptr [rbx + 0x98], 5
    xor edx, edx
    div qword ptr [rbx + 0x98]

    # The stack.
    push rbx
    push 0x77
    push word ptr [rbx]
    push qword ptr [rbx + 8]
    pop rax
    add rsp, 2
    pop qword ptr [rbx + 0xa0]
    push rbx
    pop [rsp + 8]
    push rsp
    pop rsp
    pushfq
    popfq
    push rbp
    mov rbp, rsp
    sub rsp, 0x20
    mov [rbp - 8], rax
    mov rdx, [rsp + 0x18]
    leave
    pop rbx
    push rbx
    call routine
    call [rip + callee]
    lea rax, [rip + callee]
    call [rax]
    lea rax, [rip + routine]
    call rax
    jmp [rip + target]
    ud2
landing:
    push 1
    push 2
    call drops

    # Strings, once and many times, none, and where a difference ends them.
    cld
    lea rsi, [rbx]
    lea rdi, [rbx + 0x100]
    movsb
    movsq
    lodsd
    stosw
    scasb
    cmpsb
    mov ecx, 20
    rep movsb
    mov ecx, 5
    rep movsq
    mov ecx, 3
    rep stosd
    xor ecx, ecx
    rep stosq
    rep movsb
    lea rdi, [rbx]
    mov ecx, 40
    mov al, 0x34
    repne scasb
    lea rsi, [rbx]
    lea rdi, [rbx + 0x100]
    mov ecx, 40
    repe cmpsb
    std
    lea rdi, [rbx + 0x140]
    mov ecx, 4
    rep stosb
    cld

    # Vectors, and the floating-point unit.
    movaps xmm0, [rbx]
    movups [rbx + 0x1], xmm0
    movq xmm1, qword ptr [rbx + 8]
    movss xmm2, dword ptr [rbx + 4]
    addsd xmm1, qword ptr [rbx + 0x10]
    pinsrb xmm0, byte ptr [rbx + 3], 2
    pextrw word ptr [rbx + 0xb0], xmm0, 1
    movhps qword ptr [rbx + 0xb8], xmm0
    movups xmm3, [rip + masks]
    lea rdi, [rbx + 0xc0]
    maskmovdqu xmm0, xmm3
    fild qword ptr [rbx + 0x98]
    fld tbyte ptr [rbx + 0xd0]
    fstp tbyte ptr [rbx + 0xe0]
    fistp dword ptr [rbx + 0xf0]
    fnstcw [rbx + 0xf4]
    fldcw [rbx + 0xf4]
    stmxcsr [rbx + 0xf8]
    ldmxcsr [rbx + 0xf8]
    fxsave [rip + saved]
    fxrstor [rip + saved]

    # Thread-local storage.
    mov edi, 0x1002             # arch_prctl(ARCH_SET_FS)
    lea rsi, [rip + area]
    mov eax, 158
    syscall
    mov rax, fs:[8]
    mov qword ptr fs:[0x10], 6
    mov ecx, 2
    add qword ptr fs:[rcx*8 + 8], rax

    # Many times round.
    mov ecx, 3000
1:  mov rax, [rbx + rcx]
    mov [rbx + 0x108], rax
    dec ecx
    jnz 1b
    EXIT 0

routine:
    mov rax, [rsp]
    ret

drops:
    ret 16

.bss
.balign 64
saved:  .fill 512, 1, 0
    .fill 4096, 1, 0
