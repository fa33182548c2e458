# what: ret with a count, calls and jumps through memory at rsp, push and pop of rsp, enter, leave, pushf, popf
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    mov r15, rsp
    mov r12d, 5
    xor r13d, r13d
again:
    push 1
    push 2
    call drop_two                  # ret 16
    CHECK rsp, r15, 1

    lea rax, [rip + add_one]
    push 0
    push rax
    call [rsp]
    call [rsp + 0]
    push 7
    call [rsp + 8]
    add rsp, 24
    CHECK rsp, r15, 2

    lea rax, [rip + 1f]
    push rax
    jmp [rsp]
    EXIT 3
1:  pop rcx
    CHECK rax, rcx, 4

    push rsp
    pop rcx
    CHECK rcx, r15, 5
    push rsp
    pop rsp
    CHECK rsp, r15, 6
    push 0
    push 5
    push 6
    pop [rsp + 8]                  # the address is that after the pop
    pop rax
    pop rcx
    CHECK rcx, 6, 7
    push 8
    push [rsp]
    pop rax
    pop rcx
    CHECK rax, rcx, 8

    mov rbp, r15
    enter 32, 0
    lea rax, [rsp + 40]
    CHECK rax, r15, 9
    enter 16, 2
    leave
    leave
    CHECK rsp, r15, 10
    CHECK rbp, r15, 11

    # The return address is at the top of the stack, and below it is the application's.
    call look_at_return_address
1:  lea rcx, [rip + 1b]
    CHECK rax, rcx, 12

    # A return address read from below the stack after the return (it is still there).
    mov rax, [rsp - 8]
    CHECK rax, rcx, 13

    # A stack elsewhere.
    lea rsp, [rip + own_stack_end]
    call add_one
    lea rax, [rip + add_one]
    call rax
    mov rsp, r15

    push 0x2d5
    popfq
    pushfq
    pop rax
    and eax, 0x8d5
    add r13, rax
    push 0x202
    popfw
    popfw
    popfw
    popfw
    push 0x202
    popfq
    xchg rax, rsp
    xchg rax, rsp
    CHECK rsp, r15, 14
    pushw 3
    popw ax
    CHECK rsp, r15, 15
    dec r12d
    jnz again
    SHOW sum, r13
    EXIT 0
drop_two:
    add r13, [rsp + 8]
    ret 16
add_one:
    inc r13
    ret
look_at_return_address:
    mov rax, [rsp]
    ret
SHOW_ROUTINE
.bss
    .skip 256
own_stack_end:
    .skip 16
