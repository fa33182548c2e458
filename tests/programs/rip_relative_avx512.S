# what: rip-relative operands of AVX-512: full, masked, zeroing, broadcast, compressed displacements, mask registers
# build: -nostdlib -static-pie
# needs: avx512f avx512bw avx512vl avx512dq
# traits: oracle
.include "asm.inc"
.globl _start
_start:
    mov r12d, 4
    xor r13d, r13d
    vpxorq zmm16, zmm16, zmm16
again:
    vmovdqu64 zmm0, [rip + data]
    vpaddq zmm17, zmm0, [rip + data + 1]
    mov eax, 0xa5
    kmovw k1, eax
    kmovq k2, [rip + data]
    kmovb k3, [rip + data + 5]
    vpaddq zmm18{k1}, zmm17, [rip + data + 64]
    vpaddq zmm19{k1}{z}, zmm17, qword ptr [rip + data + 8]{1to8}
    vpaddd ymm20{k3}, ymm17, dword ptr [rip + data + 4]{1to8}
    vaddps zmm21, zmm0, [rip + numbers]{1to16}
    vmovdqu8 [rip + out + 64]{k2}, zmm17
    vpcmpud k4, zmm17, [rip + data], 6
    kmovw [rip + out + 136], k4
    vpternlogq zmm22, zmm17, [rip + data], 0x96
    vshufi64x2 zmm23, zmm17, [rip + data], 0x4e
    vpermt2q zmm23, zmm17, [rip + data + 64]
    vextracti64x4 [rip + out + 144], zmm23, 1
    vbroadcasti32x4 zmm24, [rip + data]
    vcvtpd2dq ymm25, [rip + numbers]{1to8}
    vrndscalepd zmm26, [rip + numbers]{1to8}, 3
    vpcompressq [rip + out + 176]{k1}, zmm17
    vpxorq zmm16, zmm16, zmm18
    vpxorq zmm16, zmm16, zmm19
    vpxorq zmm16, zmm16, zmm20
    vpxorq zmm16, zmm16, zmm22
    vpxorq zmm16, zmm16, zmm23
    vpxorq zmm16, zmm16, zmm24
    vpxorq zmm16, zmm16, zmm26
    vmovdqu64 [rip + out], zmm16
    lea rsi, [rip + out]
    mov ecx, 30
1:  rol r13, 5
    add r13, [rsi]
    add rsi, 8
    loop 1b
    dec r12d
    jnz again
    SHOW sum, r13
    EXIT 0
SHOW_ROUTINE
.data
data: .quad 0x1122334455667788, 0x99aabbccddeeff00, 0x0f1e2d3c4b5a6978, 0x8796a5b4c3d2e1f0
    .quad 0x0123456789abcdef, 0xfedcba9876543210, 0x1, 0x8000000000000000
    .quad 0x3f800000bf800000, 0x40000000c0000000, 5, 6, 7, 8, 9, 10
    .quad 0
numbers: .double 2.5
out: .fill 40, 8, 0
