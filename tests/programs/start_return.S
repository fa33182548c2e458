# what: _start returns to an address it has pushed, and a jump leaves by way of the entry point again
# build: -nostdlib -static-pie
# status: 3
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    inc dword ptr [rip + times]
    cmp dword ptr [rip + times], 4
    lea rax, [rip + _start]
    lea rcx, [rip + finish]
    cmove rax, rcx
    push rax
    ret
finish:
    mov eax, [rip + times]
    SHOW times, rax
    EXIT 3
SHOW_ROUTINE
.data
times: .long 0
