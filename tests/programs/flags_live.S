# what: each arithmetic flag, set and clear, carried across jmp, jcc, call, ret, indirect jumps and calls, syscall
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.equ ARITHMETIC, 0x8d5             # CF PF AF ZF SF OF

# Fails unless the arithmetic flags are those in r15. Uses rax, rdx.
.macro SAME status
    pushfq
    pop rax
    mov edx, ARITHMETIC
    and rax, rdx
    CHECK rax, r15, \status
.endm

# Sets the flags to r15's.
.macro SET
    push r15
    popfq
.endm

.globl _start
_start:
    xor r14d, r14d                 # a number that walks over all 64 combinations
next:
    # Spread six bits over the places of the flags.
    xor r15d, r15d
    bt r14d, 0
    jnc 1f
    or r15d, 0x001
1:  bt r14d, 1
    jnc 1f
    or r15d, 0x004
1:  bt r14d, 2
    jnc 1f
    or r15d, 0x010
1:  bt r14d, 3
    jnc 1f
    or r15d, 0x040
1:  bt r14d, 4
    jnc 1f
    or r15d, 0x080
1:  bt r14d, 5
    jnc 1f
    or r15d, 0x800
1:
    SET
    jmp 1f
    nop
1:  SAME 10

    SET
    .byte 0xeb, 0x00               # a short jump of no distance
    SAME 11

    SET
    call keep_flags
    SAME 12

    lea rbx, [rip + 1f]
    SET
    jmp rbx
    nop
1:  SAME 13

    lea rbx, [rip + keep_flags]
    SET
    call rbx
    SAME 14

    lea rbx, [rip + 1f]
    mov [rip + cell], rbx
    SET
    jmp [rip + cell]
    nop
1:  SAME 15

    lea rbx, [rip + 1f]
    push rbx
    SET
    ret
    nop
1:  SAME 16

    # SET pushes and pops below the pushed address, which stays where it is.
    lea rbx, [rip + 1f]
    push rbx
    SET
    ret 0
1:  SAME 17

    xor ecx, ecx
    SET
    jrcxz 1f
    EXIT 18
1:  SAME 18

    mov ecx, 5
    SET
1:  loop 1b
    SAME 19

    mov ecx, 3
    SET
1:  nop
    .byte 0x67
    loop 1b
    SAME 20

    SET
    lea rbx, [rbx + 1]
    mov rcx, rbx
    SAME 21

    mov eax, 39                    # getpid
    SET
    syscall
    mov r13, r11
    SAME 22
    and r13d, ARITHMETIC           # the kernel leaves the flags in r11
    CHECK r13, r15, 23

    SET
    seto r12b
    SET
    jo 1f
    SAME 30
    CHECK r12b, 0, 30
    jmp 2f
1:  SAME 31
    CHECK r12b, 1, 31
2:

    SET
    seto r12b
    SET
    jo 1f
    SAME 32
    CHECK r12b, 0, 32
    jmp 2f
    .skip 200, 0x90
1:  SAME 33
    CHECK r12b, 1, 33
2:

    SET
    setno r12b
    SET
    jno 1f
    seto r11b
    SAME 34
    CHECK r12b, 0, 34
    jmp 2f
1:  SAME 35
    CHECK r12b, 1, 35
2:

    SET
    setno r12b
    SET
    jno 1f
    seto r11b
    SAME 36
    CHECK r12b, 0, 36
    jmp 2f
    .skip 200, 0x90
1:  SAME 37
    CHECK r12b, 1, 37
2:

    SET
    setb r12b
    SET
    jb 1f
    SAME 38
    CHECK r12b, 0, 38
    jmp 2f
1:  SAME 39
    CHECK r12b, 1, 39
2:

    SET
    setb r12b
    SET
    jb 1f
    SAME 40
    CHECK r12b, 0, 40
    jmp 2f
    .skip 200, 0x90
1:  SAME 41
    CHECK r12b, 1, 41
2:

    SET
    setae r12b
    SET
    jae 1f
    SAME 42
    CHECK r12b, 0, 42
    jmp 2f
1:  SAME 43
    CHECK r12b, 1, 43
2:

    SET
    setae r12b
    SET
    jae 1f
    SAME 44
    CHECK r12b, 0, 44
    jmp 2f
    .skip 200, 0x90
1:  SAME 45
    CHECK r12b, 1, 45
2:

    SET
    sete r12b
    SET
    je 1f
    SAME 46
    CHECK r12b, 0, 46
    jmp 2f
1:  SAME 47
    CHECK r12b, 1, 47
2:

    SET
    sete r12b
    SET
    je 1f
    SAME 48
    CHECK r12b, 0, 48
    jmp 2f
    .skip 200, 0x90
1:  SAME 49
    CHECK r12b, 1, 49
2:

    SET
    setne r12b
    SET
    jne 1f
    sete r11b
    SAME 50
    CHECK r12b, 0, 50
    jmp 2f
1:  SAME 51
    CHECK r12b, 1, 51
2:

    SET
    setne r12b
    SET
    jne 1f
    sete r11b
    SAME 52
    CHECK r12b, 0, 52
    jmp 2f
    .skip 200, 0x90
1:  SAME 53
    CHECK r12b, 1, 53
2:

    SET
    setbe r12b
    SET
    jbe 1f
    SAME 54
    CHECK r12b, 0, 54
    jmp 2f
1:  SAME 55
    CHECK r12b, 1, 55
2:

    SET
    setbe r12b
    SET
    jbe 1f
    SAME 56
    CHECK r12b, 0, 56
    jmp 2f
    .skip 200, 0x90
1:  SAME 57
    CHECK r12b, 1, 57
2:

    SET
    seta r12b
    SET
    ja 1f
    SAME 58
    CHECK r12b, 0, 58
    jmp 2f
1:  SAME 59
    CHECK r12b, 1, 59
2:

    SET
    seta r12b
    SET
    ja 1f
    SAME 60
    CHECK r12b, 0, 60
    jmp 2f
    .skip 200, 0x90
1:  SAME 61
    CHECK r12b, 1, 61
2:

    SET
    sets r12b
    SET
    js 1f
    SAME 62
    CHECK r12b, 0, 62
    jmp 2f
1:  SAME 63
    CHECK r12b, 1, 63
2:

    SET
    sets r12b
    SET
    js 1f
    SAME 64
    CHECK r12b, 0, 64
    jmp 2f
    .skip 200, 0x90
1:  SAME 65
    CHECK r12b, 1, 65
2:

    SET
    setns r12b
    SET
    jns 1f
    sets r11b
    SAME 66
    CHECK r12b, 0, 66
    jmp 2f
1:  SAME 67
    CHECK r12b, 1, 67
2:

    SET
    setns r12b
    SET
    jns 1f
    sets r11b
    SAME 68
    CHECK r12b, 0, 68
    jmp 2f
    .skip 200, 0x90
1:  SAME 69
    CHECK r12b, 1, 69
2:

    SET
    setp r12b
    SET
    jp 1f
    SAME 70
    CHECK r12b, 0, 70
    jmp 2f
1:  SAME 71
    CHECK r12b, 1, 71
2:

    SET
    setp r12b
    SET
    jp 1f
    SAME 72
    CHECK r12b, 0, 72
    jmp 2f
    .skip 200, 0x90
1:  SAME 73
    CHECK r12b, 1, 73
2:

    SET
    setnp r12b
    SET
    jnp 1f
    setp r11b
    SAME 74
    CHECK r12b, 0, 74
    jmp 2f
1:  SAME 75
    CHECK r12b, 1, 75
2:

    SET
    setnp r12b
    SET
    jnp 1f
    setp r11b
    SAME 76
    CHECK r12b, 0, 76
    jmp 2f
    .skip 200, 0x90
1:  SAME 77
    CHECK r12b, 1, 77
2:

    SET
    setl r12b
    SET
    jl 1f
    SAME 78
    CHECK r12b, 0, 78
    jmp 2f
1:  SAME 79
    CHECK r12b, 1, 79
2:

    SET
    setl r12b
    SET
    jl 1f
    SAME 80
    CHECK r12b, 0, 80
    jmp 2f
    .skip 200, 0x90
1:  SAME 81
    CHECK r12b, 1, 81
2:

    SET
    setge r12b
    SET
    jge 1f
    SAME 82
    CHECK r12b, 0, 82
    jmp 2f
1:  SAME 83
    CHECK r12b, 1, 83
2:

    SET
    setge r12b
    SET
    jge 1f
    SAME 84
    CHECK r12b, 0, 84
    jmp 2f
    .skip 200, 0x90
1:  SAME 85
    CHECK r12b, 1, 85
2:

    SET
    setle r12b
    SET
    jle 1f
    SAME 86
    CHECK r12b, 0, 86
    jmp 2f
1:  SAME 87
    CHECK r12b, 1, 87
2:

    SET
    setle r12b
    SET
    jle 1f
    SAME 88
    CHECK r12b, 0, 88
    jmp 2f
    .skip 200, 0x90
1:  SAME 89
    CHECK r12b, 1, 89
2:

    SET
    setg r12b
    SET
    jg 1f
    SAME 90
    CHECK r12b, 0, 90
    jmp 2f
1:  SAME 91
    CHECK r12b, 1, 91
2:

    SET
    setg r12b
    SET
    jg 1f
    SAME 92
    CHECK r12b, 0, 92
    jmp 2f
    .skip 200, 0x90
1:  SAME 93
    CHECK r12b, 1, 93
2:

    inc r14d
    cmp r14d, 64
    jb next
    SHOW combinations, r14

    # The direction flag is no arithmetic flag, but lives as long.
    std
    jmp 1f
1:  call keep_flags
    pushfq
    pop rax
    cld
    and eax, 0x400
    SHOW direction, rax
    # Alignment check and identification flags can be set by a program too.
    pushfq
    pop rax
    or eax, 0x200000
    push rax
    popfq
    call keep_flags
    pushfq
    pop rax
    and eax, 0x200000
    SHOW identification, rax
    EXIT 0

keep_flags:
    nop
    ret
SHOW_ROUTINE
.data
cell: .quad 0
