# what: enter with nesting levels and frame pointers copied, leave with other sizes, frames of nested procedures
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    mov r12d, 3
again:
    mov r13, rsp
    mov rbp, 0x1111
    enter 16, 0
    mov rbx, r13
    sub rbx, rsp
    SHOW plain, rbx
    call inner
    leave
    SHOW rbp, rbp
    mov rbx, r13
    sub rbx, rsp
    SHOW stack, rbx
    dec r12d
    jnz again
    EXIT 0
inner:
    enter 32, 1
    mov rax, [rbp - 8]              # its own frame pointer
    sub rax, rbp
    SHOW level1, rax
    call innermost
    leave
    ret
innermost:
    enter 8, 3
    mov rbx, r13
    sub rbx, rsp
    SHOW level3, rbx
    mov rax, [rbp - 8]
    sub rax, rbp
    neg rax
    SHOW outer, rax
    mov rsp, rbp
    pop rbp
    ret
SHOW_ROUTINE
