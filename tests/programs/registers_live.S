# what: all sixteen general registers keep their values across every kind of branch
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"

.macro FILL
    movabs rax, 0x1111111111110101
    movabs rcx, 0x2222222222220202
    movabs rdx, 0x3333333333330303
    movabs rbx, 0x4444444444440404
    movabs rbp, 0x6666666666660606
    movabs rsi, 0x7777777777770707
    movabs rdi, 0x8888888888880808
    movabs r8,  0x9999999999990909
    movabs r9,  0xaaaaaaaaaaaa0a0a
    movabs r10, 0xbbbbbbbbbbbb0b0b
    movabs r11, 0xcccccccccccc0c0c
    movabs r12, 0xdddddddddddd0d0d
    movabs r13, 0xeeeeeeeeeeee0e0e
    movabs r14, 0xffffffffffff0f0f
    movabs r15, 0x0123456789abcdef
.endm

# The registers lie on the stack only here; `except` is a register that the branch itself used.
.macro SAME status, except=none
    push r15
    push r14
    push r13
    push r12
    push r11
    push r10
    push r9
    push r8
    push rdi
    push rsi
    push rbp
    push rbx
    push rdx
    push rcx
    push rax
    mov r14d, \status
    lea r15, [rip + 9f]
    jmp check_registers_\except
9:  lea rsp, [rsp + 15 * 8]
    cmp rsp, [rip + saved_stack]
    je 9f
    EXIT \status + 100
9:
.endm

.macro CHECKER except
check_registers_\except:
    .irp place, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
    .if \place - \except
    mov rax, [rsp + 8 * \place]
    cmp rax, [rip + expected + 8 * \place]
    jne wrong
    .endif
    .endr
    jmp r15
.endm

.globl _start
_start:
    mov [rip + saved_stack], rsp
    FILL
    jmp 1f
    nop
1:  SAME 1

    FILL
    cmp rax, rcx
    jb 1f
1:  SAME 2
    FILL
    cmp rax, rcx
    ja 1f
1:  SAME 3

    FILL
    call callee
    SAME 4

    lea r11, [rip + callee]
    mov [rip + cell], r11
    FILL
    call [rip + cell]
    SAME 5

    lea r11, [rip + 1f]
    mov [rip + cell], r11
    FILL
    jmp [rip + cell]
1:  SAME 6

    FILL
    lea rax, [rip + 1f]
    jmp rax
1:  SAME 7, 0
    FILL
    lea rcx, [rip + 1f]
    jmp rcx
1:  SAME 8, 1
    FILL
    lea rdx, [rip + callee]
    call rdx
    SAME 9, 2
    FILL
    lea rbx, [rip + callee]
    call rbx
    SAME 10, 3
    FILL
    lea rbp, [rip + 1f]
    jmp rbp
1:  SAME 11, 4
    FILL
    lea r15, [rip + callee]
    call r15
    SAME 12, 14
    FILL
    lea r8, [rip + 1f]
    jmp r8
1:  SAME 13, 7

    lea r11, [rip + callee]
    mov [rip + cell], r11
    FILL
    lea r11, [rip + cell]
    call [r11]
    SAME 14, 10

    lea r11, [rip + 1f]
    push r11
    FILL
    ret
1:  SAME 15

    lea rax, [rip + 1f]
    push 0
    push 0
    push rax
    FILL
    ret 16
1:  SAME 16

    FILL
    xor ecx, ecx
    jrcxz 1f
1:  SAME 17, 1

    FILL
    mov ecx, 3
1:  loop 1b
    SAME 18, 1

    FILL
    mov eax, 39
    syscall                        # rcx and r11 belong to the kernel
1:  lea rax, [rip + 1b]
    cmp rcx, rax
    je 1f
    sub rax, rcx
    SHOW rcx_off_by, rax
1:  movabs rcx, 0x2222222222220202
    movabs r11, 0xcccccccccccc0c0c
    SAME 19, 0

    # A loop of one block whose every register is live.
    FILL
    mov r11d, 20000                # often enough to be laid out anew
1:  dec r11
    jnz 1b
    SAME 20, 10
    SHOW done, r14
    EXIT 0

callee:
    nop
    ret

wrong:
    mov edi, r14d
    mov eax, 231
    syscall

CHECKER 0
CHECKER 1
CHECKER 2
CHECKER 3
CHECKER 4
CHECKER 7
CHECKER 10
CHECKER 14
.equ none, 99
CHECKER none
SHOW_ROUTINE
.data
cell: .quad 0
saved_stack: .quad 0, 0
expected:
    .quad 0x1111111111110101, 0x2222222222220202, 0x3333333333330303, 0x4444444444440404
    .quad 0x6666666666660606, 0x7777777777770707, 0x8888888888880808, 0x9999999999990909
    .quad 0xaaaaaaaaaaaa0a0a, 0xbbbbbbbbbbbb0b0b, 0xcccccccccccc0c0c, 0xdddddddddddd0d0d
    .quad 0xeeeeeeeeeeee0e0e, 0xffffffffffff0f0f, 0x0123456789abcdef
