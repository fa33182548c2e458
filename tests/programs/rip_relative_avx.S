# what: rip-relative operands of AVX, AVX2 and FMA instructions, with two- and three-byte prefixes and immediates
# build: -nostdlib -static-pie
# needs: avx2 fma bmi2 f16c
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    mov r12d, 4
    xor r13d, r13d
again:
    vmovdqu ymm0, [rip + data]
    vpaddd ymm1, ymm0, [rip + data + 32]
    vpermq ymm2, [rip + data], 0x1b
    vpblendd ymm3, ymm1, [rip + data + 32], 0xa5
    vpsrld ymm4, ymm3, 3
    vfmadd231pd ymm5, ymm0, [rip + numbers]
    vbroadcastsd ymm6, [rip + numbers + 8]
    vaddpd ymm6, ymm6, [rip + numbers]
    vinserti128 ymm7, ymm2, [rip + data], 1
    vextracti128 [rip + out + 32], ymm7, 1
    vpmaskmovd ymm8, ymm0, [rip + data]
    vroundsd xmm9, xmm6, [rip + numbers], 2
    vcvtph2ps ymm10, [rip + data]
    vpshufb xmm8, xmm8, [rip + data + 16]
    vpcmpgtb xmm9, xmm8, [rip + data]
    vblendvps xmm11, xmm9, [rip + data], xmm8
    vpinsrb xmm11, xmm11, byte ptr [rip + data + 3], 5
    vmovsd xmm12, [rip + numbers]
    vucomisd xmm12, [rip + numbers + 8]
    setb al
    movzx eax, al
    add r13, rax
    vpxor ymm0, ymm1, ymm2
    vpxor ymm0, ymm0, ymm3
    vpxor ymm0, ymm0, ymm4
    vpxor ymm0, ymm0, ymm6
    vpxor ymm0, ymm0, ymm11
    vmovdqu [rip + out], ymm0
    mov edx, 0xff0f
    mulx rax, rcx, [rip + data]
    add r13, rcx
    rorx rax, [rip + data + 8], 9
    add r13, rax
    andn rax, rcx, [rip + data + 16]
    add r13, rax
    pdep rax, rcx, [rip + data]
    add r13, rax
    shlx rax, [rip + data], rcx
    add r13, rax
    .irp place, 0, 8, 16, 24, 32, 40
    rol r13, 7
    add r13, [rip + out + \place]
    .endr
    dec r12d
    jnz again
    vzeroupper
    SHOW sum, r13
    EXIT 0
SHOW_ROUTINE
.data
data: .quad 0x1122334455667788, 0x99aabbccddeeff00, 0x0f1e2d3c4b5a6978, 0x8796a5b4c3d2e1f0
    .quad 0x0123456789abcdef, 0xfedcba9876543210, 0x1, 0x8000000000000000
numbers: .double 1.5, 2.25, -3.75, 1000.125
out: .fill 16, 8, 0
