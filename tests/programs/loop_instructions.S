# what: loop, loope, loopne, jrcxz and jecxz, also with 32-bit counters and counts of zero
# build: -nostdlib -static
# traits: oracle memory
.include "asm.inc"
.globl _start
_start:
    mov ecx, 10
    xor eax, eax
1:  inc eax
    loop 1b
    SHOW loop, rax

    mov ecx, 10
    xor eax, eax
1:  inc eax
    cmp eax, 4
    loopne 1b
    SHOW loopne, rcx

    mov ecx, 10
    xor eax, eax
1:  inc eax
    cmp eax, eax
    loope 1b
    SHOW loope, rcx

    mov ecx, 10
    xor eax, eax
1:  inc eax
    cmp eax, 3
    loope 1b
    SHOW loope_at_once, rcx

    movabs rcx, 0x500000003        # loop with a 32-bit counter clears the upper half
    xor eax, eax
1:  inc eax
    addr32 loop 1b
    SHOW loop32, rcx
    SHOW loop32_times, rax

    movabs rcx, 0x500000000
    jrcxz 1f
    SHOW jrcxz_not_taken, rcx
1:  jecxz 1f
    SHOW jecxz_not_taken, rcx
1:  SHOW jecxz_taken, rcx
    xor ecx, ecx
    jrcxz 1f
    EXIT 1
1:
    mov ecx, 70000
1:  loop 1b
    SHOW own_target, rcx
    EXIT 0
SHOW_ROUTINE
