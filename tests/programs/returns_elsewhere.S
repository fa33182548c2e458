# what: returns that often lead elsewhere than their calls: a ring of fibers, push and ret, retpolines, frames left out, ret n
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.equ ROUNDS, 40
.globl _start

# Save the frame in [rdi], go on with the one in [rsi].
NAMED switch
    push rbx
    push rbp
    mov [rdi], rsp
    mov rsp, [rsi]
    pop rbp
    pop rbx
    ret

# Each fiber gives up a few calls deep, at a place of its own: the calls' own returns lead elsewhere, too.
.macro FIBER name, depth, next
NAMED \name
    mov ebx, \depth
1:  mov ecx, ebx
    call \name\()_deep
    add r13, rbx
    jmp 1b
NAMED \name\()_deep
    dec ecx
    js 2f
    call \name\()_deep
    inc r13
    ret
2:  lea rdi, [rip + place_of_\name]
    lea rsi, [rip + place_of_\next]
    call switch
    ret
.endm

FIBER one, 0, two
FIBER two, 3, three
FIBER three, 1, main

# A jump through a return, as compilers make them against speculation: to rax.
NAMED thunk
    call 1f
2:  pause
    jmp 2b
1:  mov [rsp], rax
    ret

NAMED add_one
    inc r13
    ret
NAMED add_ten
    add r13, 10
    ret

# Calls itself ecx times, then leaves all of these calls at once, to where the first one came from.
NAMED dive
    mov rdx, rsp
NAMED dive_deeper
    dec ecx
    js 1f
    call dive_deeper
    EXIT 1
1:  mov rsp, rdx
    inc r13
    ret

NAMED drops
    add r13, [rsp + 8]
    ret 8

# Mostly returns as it was called.
NAMED seldom
    test r12d, 15
    jnz 1f
    lea rax, [rip + came_seldom]
    mov [rsp], rax
1:  inc r13
    ret

_start:
    xor r13d, r13d
.macro BEGIN name, stack
    lea rax, [rip + \stack]
    lea rcx, [rip + \name]
    mov [rax - 8], rcx
    sub rax, 24
    mov [rip + place_of_\name], rax
.endm
    BEGIN one, stack_of_one
    BEGIN two, stack_of_two
    BEGIN three, stack_of_three
    mov r12d, ROUNDS
around:
    lea rdi, [rip + place_of_main]
    lea rsi, [rip + place_of_one]
    call switch
    dec r12d
    jnz around
    SHOW fibers, r13

    mov r12d, ROUNDS
chain:
    lea rax, [rip + third]
    push rax
    lea rax, [rip + second]
    push rax
    lea rax, [rip + first]
    push rax
    ret
first:
    add r13, 16
    ret
second:
    add r13, 256
    ret
third:
    dec r12d
    jnz chain
    SHOW chains, r13

    # One return to forty places, twice: more than a byte holds with what is popped.
    mov r12d, 2
every:
    lea r14, [rip + places]
    mov r15d, 40
each:
    lea rax, [rip + back]
    push rax
    push r14
    jmp spread
back:
    add r14, 5
    dec r15d
    jnz each
    dec r12d
    jnz every
    SHOW places, r13
    jmp retpolines
spread:
    ret
places:
    .rept 40
    inc r13                        # 3 bytes
    jmp short . + 2                # 2
    .endr
    inc r13
    ret

retpolines:
    mov r12d, ROUNDS
speculate:
    lea rax, [rip + add_one]
    lea rcx, [rip + add_ten]
    test r12d, 3
    cmovz rax, rcx
    call thunk
    dec r12d
    jnz speculate
    SHOW retpolines, r13

    # As deep each time, then by turns, then deeper than what is looked at.
    mov r12d, ROUNDS
left_out:
    mov ecx, 2
    call dive
    mov ecx, r12d
    and ecx, 3
    call dive
    mov ecx, r12d
    call dive
    dec r12d
    jnz left_out
    SHOW left, r13

    mov r12d, ROUNDS
dropped:
    push r12
    call drops
    push r12                       # the argument
    lea rax, [rip + astray]
    push rax
    jmp drops
astray:
    dec r12d
    jnz dropped
    SHOW dropped, r13

    mov r12d, 8 * ROUNDS
mostly:
    call seldom
    inc r13
came_seldom:
    dec r12d
    jnz mostly
    SHOW seldom, r13
    EXIT 0
SHOW_ROUTINE

.bss
.balign 16
.lcomm place_of_main, 8
.lcomm place_of_one, 8
.lcomm place_of_two, 8
.lcomm place_of_three, 8
.skip 4096
stack_of_one:
.skip 4096
stack_of_two:
.skip 4096
stack_of_three:
.skip 16
