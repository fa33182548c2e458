# what: a handler replaces every general register, the flags, the stack pointer and the pc in its context; all are taken
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.macro SYSCALL3 number, a, b, c
    mov eax, \number
    mov rdi, \a
    mov rsi, \b
    mov edx, \c
    mov r10d, 8
    syscall
.endm
.globl _start
_start:
    SYSCALL3 13, 10, "offset action", 0          # rt_sigaction(SIGUSR1)
    mov r12d, 3
    mov [rip + saved_stack], rsp
again:
    mov [rip + turns], r12
    mov eax, 39                     # getpid
    syscall
    mov edi, eax
    mov esi, 10
    mov eax, 62                     # kill
    syscall
    EXIT 1                          # the context leads elsewhere
landed:
    pushfq                          # on the other stack
    pop qword ptr [rip + flags]
    mov [rip + stack_then], rsp
    mov rsp, [rip + saved_stack]
    push r15
    push r14
    push r13
    push r12
    push r11
    push r10
    push r9
    push r8
    push rbp
    push rdi
    push rsi
    push rdx
    push rcx
    push rbx
    push rax
    mov rbx, rsp
    mov ebp, 15
1:  SHOW register, [rbx]
    add rbx, 8
    dec ebp
    jnz 1b
    mov rbx, [rip + flags]
    and rbx, 0xcd5
    SHOW flags, rbx
    lea rax, [rip + other_stack_end]
    sub rax, [rip + stack_then]
    SHOW stack, rax
    cld
    mov rsp, [rip + saved_stack]
    mov r12, [rip + turns]
    dec r12d
    jnz again
    EXIT 0

handler:                            # rdi number, rsi info, rdx context
    lea r8, [rdx + 40]              # uc_mcontext: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags
    xor ecx, ecx
1:  mov rax, 0x0101010101010101
    imul rax, rcx
    add rax, [rip + turns]
    mov [r8 + rcx * 8], rax
    inc ecx
    cmp ecx, 15
    jb 1b
    lea rax, [rip + other_stack_end]
    mov [r8 + 15 * 8], rax
    lea rax, [rip + landed]
    mov [r8 + 16 * 8], rax
    mov rax, [rip + turns]
    and eax, 1
    mov ecx, 0xcd5                  # carry, parity, auxiliary, zero, sign, direction, overflow
    mov edx, 0x0c4
    test eax, eax
    cmovz ecx, edx
    or ecx, 0x202
    mov [r8 + 17 * 8], rcx
    ret
restorer:
    mov eax, 15
    syscall
SHOW_ROUTINE
.data
action: .quad handler, 0x04000004, restorer, 0
.bss
.balign 16
saved_stack: .space 8
stack_then: .space 8
turns: .space 8
flags: .space 8
.space 4096
other_stack_end:
