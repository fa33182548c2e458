# what: rare encodings: superfluous prefixes, long nops, 16-bit operands, moffs, xlat, prefetches, both forms of the same add
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    mov r12d, 3
    xor r13d, r13d
again:
    .byte 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0
    .byte 0x2e, 0xeb, 0x00                   # jump with a segment prefix
    .byte 0x3e, 0x74, 0x00                   # branch hint
    .byte 0x48, 0xe9, 0, 0, 0, 0             # jump with rex.w
    .byte 0xf2, 0xe9, 0, 0, 0, 0             # bnd jump
    .byte 0x48, 0xe8, 0, 0, 0, 0             # call with rex.w
    pop rax
    .byte 0x40, 0x90
    .byte 0x4f, 0x90                         # xchg r8, rax
    .byte 0x4f, 0x90
    .byte 0x40, 0x80, 0xc0, 0x05             # add al, 5 with an empty rex
    .byte 0x01, 0xd8                         # add eax, ebx, one way
    .byte 0x03, 0xc3                         # and the other
    .byte 0x66, 0x05, 0x34, 0x12             # length-changing prefix
    movabs eax, [cell]
    add r13, rax
    movabs [cell], al
    lea rbx, [rip + cell]
    mov eax, 2
    xlat
    add r13, rax
    prefetcht0 [rip + cell]
    prefetchw [rip + cell]
    lea eax, [edi + esi * 2]
    mov eax, dword ptr [cell]
    add r13, rax
    .byte 0x8b, 0x04, 0x25                   # mov eax, [absolute], the sib form
    .long cell
    add r13, rax
    .byte 0x67, 0x8b, 0x05                   # mov eax, [eip + distance]
    .long cell - 1f
1:  add r13, rax
    .byte 0x67, 0x8d, 0x05                   # lea eax, [eip + 0]
    .long 0
1:  lea ecx, [rip + 1b]
    sub rax, rcx
    add r13, rax
    lfence
    pause
    lea ax, [rip + cell]
    crc32 rax, qword ptr [rip + cell]
    add r13, rax
    bswap rax
    cmpxchg [rip + cell + 8], rcx
    lock xadd [rip + cell + 8], rcx
    dec r12d
    jnz again
    SHOW sum, r13
    EXIT 0
SHOW_ROUTINE
.data
cell: .quad 0x0807060504030201, 0
