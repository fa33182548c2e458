# what: what a system call leaves in the registers: rcx the next address, r11 the flags, all else as it was; also failed ones
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    mov r12d, 3
again:
    mov rbx, rsp
    mov r8, 8
    mov r9, 9
    mov r10, 10
    mov edi, 77
    mov esi, 66
    mov edx, 55
    mov eax, 39                    # getpid
    xor ecx, ecx
    stc
    syscall
1:  lea rbp, [rip + 1b]
    CHECK rcx, rbp, 1
    and r11, -0x101                # without the trap flag, which a debugger sets
    SHOW r11, r11
    CHECK rdi, 77, 2
    CHECK rsi, 66, 3
    CHECK rdx, 55, 4
    CHECK r8, 8, 5
    CHECK r9, 9, 6
    CHECK r10, 10, 7
    CHECK rsp, rbx, 8
    mov eax, 3                     # close of nothing
    mov edi, -1
    syscall
    SHOW close, rax
    mov eax, 99999                 # no such call
    syscall
    SHOW unknown, rax
    mov rax, -1
    syscall
    SHOW minus_one, rax
    mov eax, 9                     # mmap with a bad length
    xor edi, edi
    xor esi, esi
    syscall
    SHOW mmap, rax
    lea rdi, [rip + 1f]            # a jump straight to a syscall instruction
    mov eax, 102                   # getuid
    jmp rdi
    nop
1:  syscall
    dec r12d
    jnz again
    EXIT 0
SHOW_ROUTINE
