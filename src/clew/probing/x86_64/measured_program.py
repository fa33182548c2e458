"""A program that measures itself: what a hit of a probe takes a thread is the difference to the same without one.

Pure. It is made here, as no compiler is asked for. For each byte that it reads it calls one of two functions so often,
and writes the time of its processor before and behind (CLOCK_THREAD_CPUTIME_ID, two `struct timespec`).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

__all__ = ["MEASURED", "MEASURED_SOURCE", "MeasuredProgram"]


class MeasuredProgram(NamedTuple):
    """`content` is the file. `jumped` is where a jump has room, and `trapped` where none has; each is come to `n_calls`
    times for a byte of `jump_request` or `trap_request`."""

    content: bytes
    jumped: int
    trapped: int
    n_calls: int
    jump_request: bytes
    trap_request: bytes


MEASURED_SOURCE: Final = """
        sub $64, %rsp
        mov $158, %eax              # arch_prctl(ARCH_SET_FS, rsp): handlers know threads by their thread pointers
        mov $0x1002, %edi
        mov %rsp, %rsi
        syscall
again:  xor %eax, %eax              # read(0, rsp + 48, 1)
        xor %edi, %edi
        lea 48(%rsp), %rsi
        mov $1, %edx
        syscall
        cmp $1, %rax
        jne end
        mov $228, %eax              # clock_gettime(CLOCK_THREAD_CPUTIME_ID, rsp)
        mov $3, %edi
        mov %rsp, %rsi
        syscall
        mov $2000, %ebp
        cmpb $'j', 48(%rsp)
        jne traps
jumps:  call jumped
        dec %ebp
        jnz jumps
        jmp told
traps:  call traps_at_return
        dec %ebp
        jnz traps
told:   mov $228, %eax              # clock_gettime(CLOCK_THREAD_CPUTIME_ID, rsp + 16)
        mov $3, %edi
        lea 16(%rsp), %rsi
        syscall
        mov $1, %eax                # write(1, rsp, 32)
        mov $1, %edi
        mov %rsp, %rsi
        mov $32, %edx
        syscall
        jmp again
end:    mov $231, %eax              # exit_group(0)
        xor %edi, %edi
        syscall
        .balign 16
jumped: mov $0, %eax
        ret
        .balign 16
traps_at_return:
        test %ebp, %ebp
        je 2f
        jmp 1f
1:      ret
        # Branched to, and its bytes would have a jump over the return lead into this page.
2:      mov $0, %eax
        ret
"""
"""What CODE is."""

_CODE: Final = bytes.fromhex(
    "4883ec40b89e000000bf021000004889e60f0531c031ff488d742430ba010000000f054883f8017556b8e4000000bf030000004889e60f05"
    "bdd0070000807c24306a750be847000000ffcd75f7eb09e84c000000ffcd75f7b8e4000000bf03000000488d7424100f05b801000000bf01"
    "0000004889e6ba200000000f05eb94b8e700000031ff0f050f1f840000000000b800000000c3662e0f1f84000000000085ed7403eb00c3b8"
    "00000000c3"
)
_BASE: Final = 0x400000
_START: Final = 0x100
"""Where the code is in the file, behind its headers."""
_JUMPED: Final = 0x90
_TRAPS: Final = 0xA0
_RETURN: Final = 0xA6
_FUNCTIONS: Final = (("_start", 0, 0x88), ("jumped", _JUMPED, 6), ("traps_at_return", _TRAPS, len(_CODE) - _TRAPS))
"""In the code, each with its size."""
_N_CALLS: Final = 2000
_MACHINE: Final = 62
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT: Final = struct.Struct("<IIQQQQQQ")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")


def _make_file() -> bytes:
    """An ELF file with a segment of code, and symbols (elf(5))."""
    names = b"\0.text\0.symtab\0.strtab\0" + b"".join(name.encode() + b"\0" for name, _, _ in _FUNCTIONS)
    symbols = _SYMBOL.pack(0, 0, 0, 0, 0, 0)
    for name, offset, size in _FUNCTIONS:
        at = names.index(b"\0" + name.encode() + b"\0") + 1
        symbols += _SYMBOL.pack(at, 1 << 4 | 2, 0, 1, _BASE + _START + offset, size)
    symbols_at = _START + len(_CODE) + -len(_CODE) % 8
    names_at = symbols_at + len(symbols)
    sections_at = names_at + len(names) + -(names_at + len(names)) % 8
    end = sections_at + 4 * _SECTION.size
    parts = (
        (
            0,
            _HEADER.pack(
                b"\x7fELF\2\1\1",
                2,
                _MACHINE,
                1,
                _BASE + _START,
                _HEADER.size,
                sections_at,
                0,
                _HEADER.size,
                _SEGMENT.size,
                2,
                _SECTION.size,
                4,
                3,
            ),
        ),
        # Of one that says nothing of its stack the kernel would have that executed.
        (_HEADER.size, _SEGMENT.pack(1, 5, 0, _BASE, _BASE, end, end, 0x1000)),
        (_HEADER.size + _SEGMENT.size, _SEGMENT.pack(0x6474E551, 6, 0, 0, 0, 0, 0, 16)),
        (_START, _CODE),
        (symbols_at, symbols),
        (names_at, names),
        (sections_at + _SECTION.size, _SECTION.pack(1, 1, 6, _BASE + _START, _START, len(_CODE), 0, 0, 16, 0)),
        (sections_at + 2 * _SECTION.size, _SECTION.pack(7, 2, 0, 0, symbols_at, len(symbols), 3, 1, 8, _SYMBOL.size)),
        (sections_at + 3 * _SECTION.size, _SECTION.pack(15, 3, 0, 0, names_at, len(names), 0, 0, 1, 0)),
    )
    content = bytearray(end)
    for offset, part in parts:
        content[offset : offset + len(part)] = part
    return bytes(content)


MEASURED: Final = MeasuredProgram(
    _make_file(), _BASE + _START + _JUMPED, _BASE + _START + _RETURN, _N_CALLS, b"j", b"t"
)
