# what: rep movs, stos, lods, cmps and scas of every width, with counts of zero and one, forwards and backwards
# build: -nostdlib -static
# traits: oracle
.include "asm.inc"
.macro STRING name, count, instruction:vararg
    lea rsi, [rip + source + 64]
    lea rdi, [rip + target + 64]
    mov ecx, \count
    mov eax, 0x7a
    cmp eax, eax
    \instruction
    pushfq
    pop rbx
    and ebx, 0x8d5
    cld
    lea rdx, [rip + source + 64]
    sub rsi, rdx
    lea rdx, [rip + target + 64]
    sub rdi, rdx
    SHOW \name, rcx
    SHOW source, rsi
    SHOW target, rdi
    SHOW accumulator, rax
    SHOW flags, rbx
.endm
.globl _start
_start:
    STRING movsb_0, 0, rep movsb
    STRING movsb_1, 1, rep movsb
    STRING movsb_60, 60, rep movsb
    STRING movsw_9, 9, rep movsw
    STRING movsd_7, 7, rep movsd
    STRING movsq_5, 5, rep movsq
    STRING movsb_once, 3, movsb
    STRING stosb_0, 0, rep stosb
    STRING stosb_11, 11, rep stosb
    STRING stosq_3, 3, rep stosq
    STRING lodsb_4, 4, rep lodsb
    STRING cmpsb_0, 0, repe cmpsb
    STRING cmpsb_20, 20, repe cmpsb
    STRING cmpsb_ne, 20, repne cmpsb
    STRING scasb_e, 30, repe scasb
    STRING scasb_ne, 30, repne scasb
    STRING scasq_ne, 6, repne scasq
    std
    STRING movsb_back_20, 20, rep movsb
    std
    STRING stosd_back_4, 4, rep stosd
    std
    STRING scasb_back, 20, repne scasb
    STRING movs_32, 6, rep movs byte ptr [edi], byte ptr [esi]
    # In a loop: the count is the number of completed instructions.
    mov r12d, 9
NAMED loop_9
    lea rsi, [rip + source]
    lea rdi, [rip + target]
    mov ecx, r12d
    rep movsb
    dec r12d
    jnz loop_9
    # All bytes of the target, summed with weights.
    lea rsi, [rip + target]
    xor eax, eax
    xor ebx, ebx
    mov ecx, 192
1:  lodsb
    imul rbx, rbx, 31
    add rbx, rax
    loop 1b
    SHOW target_sum, rbx
    EXIT 0
SHOW_ROUTINE
.data
source: .fill 64, 1, 0x31
    .ascii "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ<>"
    .fill 64, 1, 0x32
target: .fill 64, 1, 0x33
    .ascii "abcdefghij-lmnopqrstuvwxyz"
    .fill 102, 1, 0x34
