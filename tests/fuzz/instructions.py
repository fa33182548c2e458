"""The instructions that random programs are made of: one line for each shape.

Pure data. Words in braces are operands, chosen at random (operands.py):

    d8 d16 d32 d64    general register that is written; never rsp, never one that the block keeps
    s8 s16 s32 s64    general register that is read
    h8 l8             ah ch dh bh (written); those or al cl dl bl (read)
    m8 .. m512        memory, not aligned; a128 a256 a512 aligned
    D8 .. D64         d or m; S8 .. S64: s or m
    n8                memory that needs no REX prefix
    x y z             vector register 0 to 15 of 128, 256, 512 bits; X Y Z: 0 to 31
    xa                x or a128; xu yu: x or m128, y or m256; XU YU ZU: with registers up to 31
    f32 f64           x or m32, x or m64
    k kn              mask register 0 to 7; 1 to 7
    K                 nothing, {kN} or {kN}{z};  J: nothing or {kN}
    mm                MMX register
    i8 i16 i32 i64    immediate; b3 b5 b6: immediate below 8, 32, 64
    cc                condition

After `!` stand the registers that are written without being named.
"""

from __future__ import annotations

CONDITIONS = ("o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g")


def _shapes(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _each(names: str, *shapes: str) -> tuple[str, ...]:
    return tuple(f"{name} {shape}".strip() for name in names.split() for shape in shapes)


def _every_width(names: str, *shapes: str) -> tuple[str, ...]:
    return tuple(
        f"{name} {shape.replace('#', str(width))}"
        for name in names.split()
        for shape in shapes
        for width in (8, 16, 32, 64)
    )


def _wide(names: str, *shapes: str) -> tuple[str, ...]:
    return tuple(
        f"{name} {shape.replace('#', str(width))}"
        for name in names.split()
        for shape in shapes
        for width in (16, 32, 64)
    )


INTEGER = (
    *_every_width("add sub and or xor adc sbb cmp mov", "{D#}, {s#}", "{d#}, {S#}", "{d#}, {m#}", "{m#}, {s#}"),
    *_every_width("add sub and or xor adc sbb cmp test", "{D#}, {i8}"),
    *_wide("add sub and or xor adc sbb cmp test mov", "{D#}, {i16}"),
    *_every_width("test", "{S#}, {s#}"),
    *_every_width("inc dec neg not", "{D#}"),
    *_every_width("xchg", "{d#}, {d#}", "{m#}, {d#}"),
    *_every_width("xadd", "{D#}, {d#}"),
    *_every_width("shl shr sar rol ror rcl rcr", "{D#}, {b5}", "{D#}, 1", "{D#}, cl", "{d#}, {b6}"),
    *_wide("shld shrd", "{D#}, {s#}, {b5}", "{D#}, {s#}, cl"),
    *_wide("bt bts btr btc", "{D#}, {b6}", "{d#}, {s#}"),
    *_wide("bsf bsr popcnt tzcnt lzcnt", "{d#}, {S#}"),
    *_wide("imul", "{d#}, {S#}", "{d#}, {S#}, {i8}"),
    *_wide("cmov{cc}", "{d#}, {S#}"),
    "imul {d32}, {S32}, {i32}",
    "imul {d64}, {S64}, {i32}",
    *_shapes(
        """
        mov {d64}, {i64}
        movabs {d64}, {i64}
        movzx {d32}, {S8}
        movzx {d64}, {S16}
        movsx {d16}, {S8}
        movsx {d64}, {S8}
        movsxd {d64}, {S32}
        lea {d64}, {m64}
        lea {d32}, {m32}
        lea {d16}, {m16}
        add {h8}, {l8}
        sub {l8w}, {h8}
        cmp {n8}, {h8}
        mov {h8}, {n8}
        xchg {h8}, {l8w}
        test {h8}, {i8}
        movzx {e32}, {h8}
        add {n8}, {h8}
        add eax, {i32} ! rax
        add al, {i8} ! rax
        xor rax, {i32} ! rax
        test rax, {i32}
        mul {S8} ! rax
        mul {S16} ! rax rdx
        mul {S32} ! rax rdx
        mul {S64} ! rax rdx
        imul {S64} ! rax rdx
        imul {S32} ! rax rdx
        cbw ! rax
        cwde ! rax
        cdqe ! rax
        cwd ! rdx
        cdq ! rdx
        cqo ! rdx
        lahf ! rax
        sahf
        clc
        stc
        cmc
        set{cc} {D8}
        set{cc} {D8}
        set{cc} {h8}
        bswap {d32}
        bswap {d64}
        cmpxchg {m8}, {s8} ! rax
        cmpxchg {D32}, {s32} ! rax
        cmpxchg {D64}, {s64} ! rax
        cmpxchg8b {m64} ! rax rdx
        lock cmpxchg16b {a128} ! rax rdx
        lock add {m64}, {s64}
        lock inc {m32}
        lock xadd {m64}, {d64}
        lock bts {m32}, {b5}
        lock cmpxchg {m32}, {s32} ! rax
        lock neg {m16}
        lock sub {m8}, {i8}
        crc32 {d32}, {S8}
        crc32 {d64}, {S64}
        movbe {d64}, {m64}
        movbe {m32}, {s32}
        movnti {m64}, {s64}
        nop
        nop dword ptr [rax+rax*8+0x12345678]
        endbr64
        pause
        prefetcht0 {m8}
        sfence
        mfence
        rdfsbase {d64}
        rdgsbase {d64}
        rdgsbase {d32}
        mov {d32}, ss
        mov {d16}, ds
        mov {d64}, fs
        """
    ),
)

BMI = _shapes(
    """
    andn {d64}, {s64}, {S64}
    andn {d32}, {s32}, {m32}
    bextr {d64}, {S64}, {s64}
    blsi {d64}, {S64}
    blsr {d32}, {S32}
    blsmsk {d64}, {S64}
    bzhi {d64}, {S64}, {s64}
    pdep {d64}, {s64}, {S64}
    pext {d64}, {s64}, {m64}
    pext {d32}, {s32}, {S32}
    rorx {d64}, {S64}, {b6}
    rorx {d32}, {m32}, {b5}
    sarx {d64}, {S64}, {s64}
    shlx {d32}, {S32}, {s32}
    shrx {d64}, {m64}, {s64}
    mulx {d64}, {d64}, {S64}
    adcx {d64}, {S64}
    adox {d32}, {m32}
    """
)

_SSE_INTEGER = """paddb paddw paddd paddq psubb psubd psubq pmullw pmulld pmuludq pmaddwd pand pandn por pxor pcmpeqb
    pcmpeqd pcmpgtw punpcklbw punpckhqdq packuswb packssdw pminub pmaxsd pavgb psadbw pshufb phaddd psignw pmulhrsw"""
_SSE_FLOAT = "addps subps mulps divps minps maxps addpd mulpd sqrtps andps xorpd unpcklps cvtdq2ps cvtps2dq haddps"
_SSE_SCALAR32 = "addss subss mulss divss minss sqrtss cvtss2sd comiss ucomiss"
_SSE_SCALAR64 = "addsd subsd mulsd divsd maxsd sqrtsd cvtsd2ss comisd ucomisd"

SSE = (
    *_each(_SSE_INTEGER, "{x}, {xa}"),
    *_each(_SSE_FLOAT, "{x}, {xa}"),
    *_each(_SSE_SCALAR32, "{x}, {f32}"),
    *_each(_SSE_SCALAR64, "{x}, {f64}"),
    *_each("movaps movdqa", "{x}, {xa}", "{a128}, {x}"),
    *_each("movups movdqu movupd", "{x}, {m128}", "{m128}, {x}"),
    *_each("psrlw pslld psrlq psllq psrad", "{x}, {b5}", "{x}, {xa}"),
    *_each("pshufd pshufhw pshuflw shufps palignr pblendw", "{x}, {xa}, {i8}"),
    *_shapes(
        """
        movd {x}, {S32}
        movq {x}, {S64}
        movd {D32}, {x}
        movq {D64}, {x}
        movq {x}, {f64}
        movss {x}, {m32}
        movss {m32}, {x}
        movsd {x}, {m64}
        movsd {m64}, {x}
        movhps {x}, {m64}
        movlpd {m64}, {x}
        lddqu {x}, {m128}
        movntdq {a128}, {x}
        movmskps {d32}, {x}
        pmovmskb {d32}, {x}
        pextrb {m8}, {x}, {b3}
        pextrd {D32}, {x}, {b3}
        pextrq {D64}, {x}, {b3}
        pinsrb {x}, {m8}, {b3}
        pinsrd {x}, {S32}, {b3}
        pinsrq {x}, {S64}, {b3}
        insertps {x}, {f32}, {i8}
        extractps {D32}, {x}, {b3}
        roundsd {x}, {f64}, {b3}
        dpps {x}, {xa}, {i8}
        ptest {x}, {xa}
        pcmpistri {x}, {xa}, {i8} ! rcx
        pcmpestrm {x}, {xa}, {i8}
        pmovzxbw {x}, {f64}
        pblendvb {x}, {xa}, xmm0
        cvtsi2sd {x}, {S64}
        cvtsi2ss {x}, {S32}
        cvttsd2si {d64}, {f64}
        cvtss2si {d32}, {f32}
        cmpltps {x}, {xa}
        cmpeqsd {x}, {f64}
        aesenc {x}, {xa}
        aeskeygenassist {x}, {xa}, {i8}
        pclmulqdq {x}, {xa}, 0x11
        sha1msg1 {x}, {xa}
        sha256rnds2 {x}, {xa}, xmm0
        movdq2q mm1, {x}
        """
    ),
)

_AVX_INTEGER = """vpaddb vpaddd vpaddq vpsubw vpmulld vpmuludq vpand vpandn vpor vpxor vpcmpeqb vpcmpgtq vpunpcklbw
    vpackusdw vpminud vpmaxsb vpavgw vpsadbw vpshufb vphaddw vpsignd"""
_AVX_FLOAT = "vaddps vsubpd vmulps vdivpd vminps vmaxpd vandps vxorps vunpckhpd vhaddpd vaddsubps"

AVX = (
    *_each(_AVX_INTEGER, "{x}, {x}, {xu}", "{y}, {y}, {yu}"),
    *_each(_AVX_FLOAT, "{x}, {x}, {xu}", "{y}, {y}, {yu}"),
    *_each("vaddss vmulss vsqrtss vfmadd213ss vfnmadd231ss", "{x}, {x}, {f32}"),
    *_each("vaddsd vdivsd vmaxsd vfmadd132sd vfmsub213sd", "{x}, {x}, {f64}"),
    *_each("vfmadd231ps vfmadd213pd vfnmsub132ps vfmaddsub213ps", "{x}, {x}, {xu}", "{y}, {y}, {yu}"),
    *_each("vmovups vmovdqu", "{x}, {xu}", "{y}, {yu}", "{m128}, {x}", "{m256}, {y}"),
    *_each("vmovaps vmovdqa", "{x}, {a128}", "{a256}, {y}"),
    *_each("vpsrld vpsllq vpsraw", "{y}, {y}, {b5}", "{y}, {y}, {xu}"),
    *_each("vpshufd vpshuflw vpermilps", "{y}, {yu}, {i8}"),
    *_each("vpblendd vshufps vpalignr vperm2i128 vmpsadbw", "{y}, {y}, {yu}, {i8}"),
    *_each("vblendvps vpblendvb", "{y}, {y}, {yu}, {y}"),
    *_each("vpsllvd vpsravd vpsrlvq vpermd vpmaskmovd", "{y}, {y}, {m256}"),
    *_shapes(
        """
        vpmaskmovq {m256}, {y}, {y}
        vmaskmovps {m128}, {x}, {x}
        vbroadcastss {y}, {f32}
        vpbroadcastb {y}, {m8}
        vbroadcasti128 {y}, {m128}
        vinserti128 {y}, {y}, {xu}, {b3}
        vextracti128 {m128}, {y}, {b3}
        vpermq {y}, {yu}, {i8}
        vpmovzxwd {y}, {xu}
        vpmovmskb {d32}, {y}
        vptest {y}, {yu}
        vtestps {x}, {xu}
        vcmpps {y}, {y}, {yu}, {b5}
        vucomisd {x}, {f64}
        vmovd {x}, {S32}
        vmovq {D64}, {x}
        vmovntdq {a256}, {y}
        vcvtsi2sd {x}, {x}, {S64}
        vcvttss2si {d64}, {f32}
        vcvtps2ph {m128}, {y}, {b3}
        vcvtph2ps {y}, {xu}
        vroundpd {y}, {yu}, {b3}
        vpclmulqdq {y}, {y}, {yu}, 1
        vaesdec {y}, {y}, {yu}
        vgf2p8mulb {y}, {y}, {yu}
        vzeroupper
        vpinsrw {x}, {x}, {m16}, {b3}
        vpextrw {m16}, {x}, {b3}
        vlddqu {y}, {m256}
        """
    ),
)

_AVX512_INTEGER = """vpaddd vpaddq vpsubd vpmulld vpandd vpandnq vporq vpxord vpminsq vpmaxud vpmuludq vprolvd vprorvq
    vpsllvd vpermd vpunpckldq"""
_AVX512_FLOAT = "vaddps vmulps vsubps vdivps vminps vmaxps vandps"

AVX512 = (
    *_each(_AVX512_INTEGER.replace("vpermd", ""), "{X}{K}, {X}, {XU}", "{Y}{K}, {Y}, {YU}", "{Z}{K}, {Z}, {ZU}"),
    *_each(_AVX512_FLOAT, "{X}{K}, {X}, {XU}", "{Z}{K}, {Z}, {ZU}"),
    *_each("vaddps vmulps vsubps vdivps", "{Z}{K}, {Z}, {z}, {rn-sae}"),
    *_each("vaddps vmulps vpaddd vpandd vpminsd vfmadd213ps vpermi2d", "{Z}{K}, {Z}, {m32}{1to16}"),
    *_each("vaddpd vpaddq vpmuludq", "{Z}{K}, {Z}, {m64}{1to8}"),
    *_each("vaddpd vpaddq", "{Y}{K}, {Y}, {m64}{1to4}", "{X}{K}, {X}, {m64}{1to2}"),
    *_each("vpternlogd vpternlogq", "{Z}{K}, {Z}, {ZU}, {i8}", "{X}{K}, {X}, {XU}, {i8}"),
    *_each("vfmadd231ps vfnmadd132ps", "{Z}{K}, {Z}, {ZU}"),
    *_each("vmovdqu32 vmovdqu64 vmovups vmovdqu8", "{Z}{K}, {ZU}", "{m512}{J}, {Z}", "{Y}{K}, {m256}"),
    *_each("vmovdqa32 vmovapd", "{Z}{K}, {a512}", "{a512}{J}, {Z}"),
    *_each("vpcompressd vcompresspd", "{m512}{J}, {Z}", "{Z}{K}, {Z}"),
    *_each("vpexpandd vexpandps", "{Z}{K}, {m512}"),
    *_each("vpcmpd vpcmpuq", "{k}{J}, {Z}, {ZU}, {b3}"),
    *_each("vptestmd vptestnmq", "{k}{J}, {Z}, {ZU}"),
    *_each("vshuff32x4 valignd vpshldd", "{Z}{K}, {Z}, {ZU}, {i8}"),
    *_each("vpsrld vprold", "{Z}{K}, {ZU}, {b5}"),
    *_each("kandw kxorq korb kaddd kandnq kunpckbw", "{k}, {k}, {k}"),
    *_shapes(
        """
        vcmpps {k}{J}, {Z}, {ZU}, {b5}
        vpbroadcastd {Z}{K}, {s32}
        vpbroadcastq {Z}{K}, {m64}
        vbroadcastf32x4 {Z}{K}, {m128}
        vinserti64x4 {Z}{K}, {Z}, {YU}, 1
        vextracti32x4 {m128}{J}, {Z}, {b3}
        vpermb {Z}{K}, {Z}, {ZU}
        vpermt2d {Z}{K}, {Z}, {ZU}
        vpmovdb {m128}{J}, {Z}
        vpmovqw {X}{K}, {Z}
        vpmovm2d {Z}, {k}
        vpmovd2m {k}, {Z}
        vpopcntd {Z}{K}, {ZU}
        vplzcntd {Z}{K}, {ZU}
        vpconflictd {Z}{K}, {ZU}
        vcvtps2udq {Z}{K}, {ZU}
        vcvtusi2sd {X}, {X}, {S64}
        vcvttsd2usi {d64}, {X}
        vrndscaleps {Z}{K}, {ZU}, {b6}
        vfixupimmps {Z}{K}, {Z}, {ZU}, {i8}
        vrangeps {Z}{K}, {Z}, {ZU}, {b3}
        vgetexpps {Z}{K}, {ZU}
        vscalefps {Z}{K}, {Z}, {ZU}
        vaddsd {X}{K}, {X}, {m64}
        vmovss {X}{K}, {m32}
        vmovsd {m64}{J}, {X}
        vdpbf16ps {Z}{K}, {Z}, {ZU}
        vpdpbusd {Z}{K}, {Z}, {ZU}
        vpmadd52luq {Z}{K}, {Z}, {ZU}
        kmovw {k}, {s32}
        kmovq {k}, {s64}
        kmovb {k}, {m8}
        kmovw {k}, {m16}
        kmovd {d32}, {k}
        kmovq {m64}, {k}
        kortestw {k}, {k}
        ktestq {k}, {k}
        kshiftrq {k}, {k}, {i8}
        knotd {k}, {k}
        """
    ),
)

MMX = _shapes(
    """
    movd {mm}, {S32}
    movq {mm}, {m64}
    movq {m64}, {mm}
    paddw {mm}, {mm}
    pxor {mm}, {m64}
    pshufw {mm}, {m64}, {i8}
    movq2dq {x}, {mm}
    """
)
