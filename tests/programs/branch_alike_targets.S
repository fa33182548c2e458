# what: jumps, calls and returns to targets that differ in nothing but their upper bits, by one bit or many: flags and registers are kept
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.equ ARITHMETIC, 0x8d5             # CF PF AF ZF SF OF

# Sets r8 to r11 and rcx, which nothing here changes, and the flags to r15's.
.macro SET
    mov ecx, 0x1111
    mov r8d, 0x8888
    mov r9d, 0x9999
    mov r10d, 0xaaaa
    mov r11d, 0xbbbb
    push r15
    popfq
.endm

# Fails unless all are as SET made them. Uses rax, rdx.
.macro SAME status
    pushfq
    pop rax
    mov edx, ARITHMETIC
    and rax, rdx
    CHECK rax, r15, \status
    CHECK rcx, 0x1111, \status
    CHECK r8, 0x8888, \status
    CHECK r9, 0x9999, \status
    CHECK r10, 0xaaaa, \status
    CHECK r11, 0xbbbb, \status
.endm

# A place at which a piece of 64 KiB starts. What its call returns to differs from the others' alike.
.macro PLACE number
    .p2align 16
place_\number:
    SAME 1\number
    SET
    call keep
    SAME 2\number
    add r14d, \number + 1
    jmp rbp
.endm

.globl _start
_start:
    xor r14d, r14d
    mov r13d, 3
next_round:
    # All flags clear, all set, and some.
    lea rbx, [rip + states]
    mov r15d, [rbx + r13 * 4]
    lea r12, [rip + places]
next_place:
    # One jump for all places, and one return that no call announced.
    mov rbx, [r12]
    lea rbp, [rip + 1f]
    SET
    jmp rbx
1:  lea rbp, [rip + 1f]
    mov rbx, [r12]
    push rbx
    SET
    ret
1:  add r12, 8
    lea rbx, [rip + places_end]
    cmp r12, rbx
    jb next_place
    dec r13d
    jns next_round
    SHOW places, r14
    EXIT 0

keep:
    ret
SHOW_ROUTINE
PLACE 0
PLACE 1
PLACE 2
PLACE 3
PLACE 4

.data
.p2align 3
# Each after one that it differs from by other bits, in both directions.
places: .quad place_0, place_1, place_3, place_0, place_4, place_2, place_1, place_2, place_4, place_3, place_0, place_3
places_end:
states: .long 0, ARITHMETIC, 0x881, 0x54
