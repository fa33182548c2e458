"""The rules of the runtime image, on small images assembled here: one that keeps them all, and one that breaks each."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from checks.runtime_image import ExpectedNote, check_image

NOTE = ExpectedNote(name=b"clew", type=1, version=7, schema_hash=bytes(range(32)))

NOTE_SECTION = """
    .section .note.clew, "a", @note
    .long 5, 40, 1
    .asciz "clew"
    .balign 4
    .long 7, 0
    .byte 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    .balign 4
"""
GOOD = f"""
    .globl _start
    .text
_start:
    lea     pointer(%rip), %rax
    movaps  %xmm0, %xmm1
    fxsave  (%rax)
    xsave   (%rax)
    ldmxcsr (%rax)
    stmxcsr (%rax)
    pause
    inc     %gs:0x10
    jmp     *(%rax)
    .data
pointer:
    .quad _start
    .section .note.GNU-stack, "", @progbits
    {NOTE_SECTION}
"""
Build = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Assembles and links an image from assembly text, with linker options."""

    def build_image(source: str, *options: str, kind: str = "-static-pie") -> Path:
        path = tmp_path / "image"
        (tmp_path / "image.s").write_text(source)
        command: list[str | Path] = [
            "gcc",
            "-nostdlib",
            kind,
            "-Wl,--build-id=none",
            "-o",
            path,
            tmp_path / "image.s",
            *options,
        ]
        subprocess.run(command, check=True, capture_output=True)
        return path

    return build_image


def messages(path: Path) -> list[str]:
    return [str(violation) for violation in check_image(path, NOTE)]


def test_good_image_breaks_nothing(build: Build) -> None:
    assert messages(build(GOOD)) == []


def test_good_image_without_symbols_breaks_nothing(build: Build) -> None:
    assert messages(build(GOOD, "-s")) == []


@pytest.mark.parametrize(
    ("instruction", "reason"),
    [
        ("vmovaps %xmm0, %xmm1", "VEX instruction: vmovaps"),
        ("vaddps %ymm0, %ymm1, %ymm2", "VEX instruction: vaddps"),
        ("vzeroupper", "VEX instruction: vzeroupper"),
        ("andn %rax, %rbx, %rcx", "VEX instruction: andn"),
        ("vaddps %zmm0, %zmm1, %zmm2", "EVEX instruction: vaddps"),
        ("kmovw %eax, %k1", "VEX instruction: kmovw"),
        ("fld1", "x87 instruction: fld1"),
        ("fninit", "x87 instruction: fninit"),
        ("fwait", "x87 instruction: wait"),
        ("fldt (%rax)", "x87 instruction: fld"),
        ("emms", "MMX instruction: emms"),
        ("movd %eax, %mm3", "MMX instruction: movd"),
        ("paddd (%rax), %mm0", "MMX instruction: paddd"),
        ("movdq2q %xmm0, %mm0", "MMX instruction: movdq2q"),
        ("pfadd %mm0, %mm1", "3DNow instruction: pfadd"),
        ("mov %fs:0x28, %rax", "%fs instruction: mov"),
        (".byte 0x06", "byte 0x06 does not decode"),
    ],
)
def test_refused_instruction_is_found(build: Build, instruction: str, reason: str) -> None:
    found = messages(build(GOOD.replace("pause", instruction)))
    assert len(found) == 1
    assert reason in found[0]


@pytest.mark.parametrize(
    "instruction", ["pop %rax", "rdfsbase %rax", "wrgsbase %rax", "paddd %xmm0, %xmm1", "xrstor (%rax)"]
)
def test_allowed_instruction_passes(build: Build, instruction: str) -> None:
    assert messages(build(GOOD.replace("pause", instruction))) == []


def test_every_refused_instruction_is_reported_not_the_first_only(build: Build) -> None:
    found = messages(build(GOOD.replace("pause", "fld1\n vzeroupper\n .byte 0x06\n emms")))
    assert len(found) == 4


def test_interpreter_is_refused(build: Build) -> None:
    assert any("PT_INTERP" in message for message in messages(build(GOOD, kind="-pie")))


def test_needed_library_is_refused(build: Build, tmp_path: Path) -> None:
    library = tmp_path / "libneeded.so"
    (tmp_path / "needed.s").write_text(".globl needed\n.text\nneeded: ret\n")
    subprocess.run(["gcc", "-nostdlib", "-shared", "-o", library, tmp_path / "needed.s"], check=True)
    found = messages(build(GOOD, "-Wl,--no-as-needed", str(library), kind="-pie"))
    assert any("DT_NEEDED" in message for message in found)


def test_undefined_symbol_is_refused(build: Build) -> None:
    found = messages(build(GOOD.replace("pause", "call missing@PLT"), kind="-shared"))
    assert any("undefined symbol missing" in message for message in found)


def test_text_relocation_is_refused(build: Build) -> None:
    source = GOOD.replace("pause", "pause\n.balign 8, 0x90\n") + "\n.section .rodata\n.quad _start\n"
    found = messages(build(source, "-Wl,-z,notext"))
    assert any("text relocation" in message for message in found)


def test_other_relocation_is_refused(build: Build) -> None:
    source = GOOD + "\n.text\n.type choose, @gnu_indirect_function\nchoose: ret\n.data\n.quad choose\n"
    found = messages(build(source))
    assert any("only R_X86_64_RELATIVE" in message for message in found)


def test_writable_and_executable_segment_is_refused(build: Build) -> None:
    found = messages(build(GOOD, "-Wl,--omagic"))
    assert any("writable and executable" in message for message in found)


def test_executable_stack_is_refused(build: Build) -> None:
    assert any("executable stack" in message for message in messages(build(GOOD, "-Wl,-z,execstack")))


def test_thread_local_storage_is_refused(build: Build) -> None:
    source = GOOD + '\n.section .tbss, "awT", @nobits\n.zero 8\n'
    assert any("PT_TLS" in message for message in messages(build(source)))


def test_constructor_is_refused(build: Build) -> None:
    source = GOOD + '\n.section .init_array, "aw", @init_array\n.quad _start\n'
    assert any("constructors" in message for message in messages(build(source)))


def test_fixed_address_image_is_refused(build: Build) -> None:
    assert any("ET_EXEC" in message for message in messages(build(GOOD, kind="-static")))


def test_entry_outside_code_is_refused(build: Build) -> None:
    assert any("no executable segment" in message for message in messages(build(GOOD, "-Wl,-e,0x10")))


def test_size_budget_is_kept(build: Build) -> None:
    found = list(check_image(build(GOOD), NOTE, size_budget_bytes=100))
    assert ["budget" in violation.message for violation in found] == [True]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((NOTE_SECTION, ""), "no note"),
        (('.asciz "clew"', '.asciz "clow"'), "no note"),
        ((".long 5, 40, 1", ".long 5, 40, 2"), "no note"),
        ((".long 7, 0", ".long 8, 0"), "protocol version 8, not 7"),
        ((".byte 0,1", ".byte 9,1"), "schema hash 09"),
        ((".long 5, 40, 1", ".long 5, 36, 1"), "36 bytes long, not 40"),
    ],
)
def test_note_must_be_this_protocols(build: Build, change: tuple[str, str], reason: str) -> None:
    found = messages(build(GOOD.replace(*change)))
    assert len(found) == 1
    assert reason in found[0]


@pytest.mark.parametrize("content", [b"", b"not an image", b"\x7fELF\x02\x01\x01" + bytes(20)])
def test_what_is_no_elf_file_is_one_violation(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "image"
    path.write_bytes(content)
    assert [violation.message.split(":")[0] for violation in check_image(path, NOTE)] == ["not a good ELF file"]


def test_other_architecture_is_refused(build: Build) -> None:
    path = build(GOOD)
    content = bytearray(path.read_bytes())
    content[18:20] = (183).to_bytes(2, "little")
    path.write_bytes(content)
    assert [violation.message for violation in check_image(path, NOTE)] == ["made for AArch64, not x86-64"]
