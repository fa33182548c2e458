# what: code entered in the middle of its own instructions; two decodings of the same bytes that meet again
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    xor r12d, r12d
    mov ebx, 5
again:
    mov eax, 1
    call hidden                    # mov eax, 0x90c3c0ff ; then ret
    add r12, rax
    mov eax, 1
    call hidden + 1                # inc eax ; ret
    add r12, rax
    lea rdx, [rip + meeting]
    test ebx, 1
    lea rcx, [rdx + 2]
    cmovnz rdx, rcx
    xor eax, eax
    call rdx
    add r12, rax
    dec ebx
    jnz again
    SHOW sum, r12
    EXIT 0
hidden:
    .byte 0xb8, 0xff, 0xc0, 0xc3, 0x90
    ret
meeting:
    .byte 0x66, 0xb9, 0xff, 0xc0   # mov cx, 0xc0ff   or, two bytes on, inc eax
    inc eax
    ret
SHOW_ROUTINE
