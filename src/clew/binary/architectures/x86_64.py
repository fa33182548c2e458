"""x86-64, as files and code have it.

Runs in the controller. Light: what needs numpy or capstone is imported when it is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from clew.binary.architectures.architecture import Architecture, FrameShape
from clew.protocol._constants import ARCHITECTURES

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from clew.binary.architectures.architecture import WrappedCallout
    from clew.binary.architectures.details import InstructionDetails
    from clew.binary.arguments import Signature, Signed

__all__ = ["X86_64"]

_EM_386: Final = 3
_DIRECT_BRANCH: Final = re.compile(r"(?:bnd |notrack )?(?:call|j[a-z]+|loop[a-z]*|xbegin) 0x([0-9a-f]{1,16})$")
_DEFINITION: Final = ARCHITECTURES["x86_64"]


class _X86_64(Architecture):  # noqa: N801
    machine = _DEFINITION.machine
    page_bytes = _DEFINITION.page_bytes
    este_name = "ARCH_X8664"
    program_counter = _DEFINITION.program_counter
    # System V ABI, AMD64 supplement, figure 3.36.
    dwarf_registers = ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)), "rip")
    first_dwarf_vector = 17
    frame_pointer = "rbp"

    # The same, 3.2.3: the return address lies below the arguments.
    vector_registers = "xmm"
    n_vector_registers = 8
    kernel_registers = (
        *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8"),
        *("rax", "rcx", "rdx", "rsi", "rdi", "", "rip", "", "rflags", "rsp", ""),
    )
    argument_registers = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
    call_registers = ("rdi", "rsi", "rdx", "r10", "r8", "r9")
    result_register = "rax"
    stack_arguments = 8

    # mov rax, 15 (glibc) or mov eax, 15 (musl), each with syscall behind it (rt_sigreturn); struct rt_sigframe has a
    # return address, which is gone there, a struct ucontext of 304 bytes, the struct siginfo
    # (arch/x86/include/asm/sigframe.h).
    handler_returns = (b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05", b"\xb8\x0f\0\0\0\x0f\x05")
    handler_frame = 304
    # struct sigcontext: rsp, rip, the flags, of which one is always set and the upper ones never, and a word with cs;
    # in front of it struct ucontext has two words and struct sigaltstack, of three.
    frame = FrameShape(
        marks=((1, 0xFFFF_FFFF_FFC0_0002, 2), (2, 0xFFFF, 0x33)), stack_pointer=-1, stack_start=-19, stack_bytes=-17
    )

    # glibc, sysdeps/x86_64/nptl/tls.h; R_X86_64_DTPMOD64, R_X86_64_TPOFF64.
    dtv_offset = 8
    dtv_entry_bytes = 16
    module_relocation = 16
    thread_offset_relocation = 18

    # R_X86_64_NONE, R_X86_64_RELATIVE; R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT; R_X86_64_64, R_X86_64_IRELATIVE.
    none_relocation = 0
    relative_relocation = 8
    function_relocations = (6, 7)
    word_relocation = 1
    chosen_relocation = 37

    other_width = "32-bit (x32)"
    max_instruction_bytes = 15
    system_call_bytes = 2
    # mov rax, 15, or eax; syscall.
    signal_returns = (b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05", b"\xb8\x0f\0\0\0\x0f\x05")
    restart_call = 219
    assembler_directives = ".intel_syntax noprefix\n"

    def iter_instructions(self, code: bytes, address: int) -> Iterator[tuple[int, int, str, str]]:
        from clew.binary.architectures.x86_64_code import decoder

        return iter(decoder().disasm_lite(code, address))

    def iter_details(self, code: bytes, address: int) -> Iterator[InstructionDetails]:
        from clew.binary.architectures.x86_64_details import iter_details

        return iter_details(code, address)

    def wrap_callout(self, text: bytes, entry: int, size_bytes: int, *, keeps_flags: bool) -> WrappedCallout:
        from clew.binary.architectures.x86_64_callouts import wrap_callout

        return wrap_callout(text, entry, size_bytes, keeps_flags=keeps_flags)

    callout_header = (
        "#include <stdint.h>\n"
        '#define CLEW_CALLOUT __attribute__((no_caller_saved_registers, used, section(".text.clew_callout")))\n'
        "struct clew_registers { uint64_t rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, "
        "r8, r9, r10, r11, r12, r13, r14, r15; };\n"
    )
    # Data may lie anywhere; code is moved, so it calls itself by distances only.
    callout_options = (
        "-mcmodel=medium",
        "-mlarge-data-threshold=0",
        "-mgeneral-regs-only",
        "-mno-red-zone",
        "-fcf-protection=none",
    )

    def place_arguments(self, signature: Signature) -> Signed:
        from clew.binary.architectures.x86_64_arguments import place_arguments

        return place_arguments(signature)

    def express_operand(self, operand: str, kind: str, find_symbol: Callable[[str], str]) -> str:
        from clew.binary.architectures.x86_64_operands import express_operand

        return express_operand(operand, kind, find_symbol)

    def is_call(self, name: str) -> bool:
        return name == "call"

    def find_target(self, text: str) -> int | None:
        match = _DIRECT_BRANCH.match(text)
        return int(match[1], 16) if match else None

    def find_call_number(self, code: bytes) -> int | None:
        from clew.binary.architectures.x86_64_code import find_call_number

        return find_call_number(code)

    def find_call_name(self, number: int) -> str | None:
        from clew.binary.architectures.x86_64_calls import find_name

        return find_name(number)

    def find_call(self, name: str) -> int | None:
        from clew.binary.architectures.x86_64_calls import find_number

        return find_number(name)

    def find_stub_slots(self, code: npt.NDArray[np.uint8], address: int) -> tuple[Any, Any]:
        from clew.binary.architectures.x86_64_code import find_stub_slots

        return find_stub_slots(code, address)

    def is_for_other_width(self, head: bytes) -> bool:
        # Programs for IA-32, and for x32: 32-bit pointers in 64-bit code.
        is_elf = head.startswith(b"\x7fELF\x01\x01")
        return is_elf and int.from_bytes(head[18:20], "little") in (_EM_386, self.machine)


X86_64: Final = _X86_64(_DEFINITION.name, _DEFINITION.title)
