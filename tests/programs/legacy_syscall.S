# what: system calls by int 0x80 from 64-bit code
# build: -nostdlib -static
# lost: released_threads
.include "asm.inc"
.globl _start
_start:
    mov r12d, 3
again:
    mov eax, 20                    # getpid in the 32-bit table
    mov r8, 5
    int 0x80
    mov rbx, rax
    mov eax, 39
    syscall
    sub rbx, rax
    SHOW difference, rbx
    dec r12d
    jnz again
    EXIT 0
SHOW_ROUTINE
