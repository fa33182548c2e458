"""A compiled function as it is called in the middle of a block of x86-64, where every register is somebody's.

Runs in the controller. The function saves what it changes (GCC's attribute no_caller_saved_registers); what is left are
the flags. It runs on a stack of the runtime's, which has the program's stack pointer on top. What needs a stack only to
save registers gets none: the runtime keeps them in slots of the thread's.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from iced_x86 import Code, Decoder, FlowControl, Instruction, RegisterInfo

from clew.binary.architectures.architecture import WrappedCallout
from clew.binary.architectures.x86_64_details import registers_read, registers_used, registers_written
from clew.protocol._constants import MAX_INLINE_REGISTERS

__all__ = ["wrap_callout"]

# push rax; lahf; seto al; push rax: flags in ah and al, without pushf and popf, which take tens of cycles.
_SAVE_FLAGS: Final = bytes.fromhex("50 9f 0f90c0 50")
# pop rax; add al, 127, which overflows if it was 1; sahf; pop rax.
_LOAD_FLAGS: Final = bytes.fromhex("58 047f 9e 58")
# As they lie in struct clew_registers, the last one first; rsp is the program's.
_PUSHED: Final = ("r15", "r14", "r13", "r12", "r11", "r10", "r9", "r8", "rdi", "rsi", "rbp", "rsp", "rbx", "rdx", "rcx")
_NUMBERS: Final = {name: n for n, name in enumerate(["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"])} | {
    f"r{n}": n for n in range(8, 16)
}


def wrap_callout(text: bytes, entry: int, size_bytes: int, *, keeps_flags: bool) -> WrappedCallout:
    """Machine code that calls the function at `entry` of some code, wherever it is put: it changes no register but what
    the function changes in the registers that it is shown, and flags only if it need not keep them."""
    end = entry + size_bytes
    body = list(Decoder(64, text[entry:end], ip=entry))
    inlined = _inline(body)
    is_shown = any(_reads_argument(one) or _leaves(one, entry, end) for one in body)
    if inlined is not None and not is_shown:
        core = _take_core(inlined)
        if core is not None:
            code = b"".join(text[one.ip : one.next_ip] for one in core.instructions)
            changes_flags = any(one.rflags_modified for one in core.instructions)
            return WrappedCallout(code, core.registers, keeps_flags=keeps_flags and changes_flags)
    before, after = list[bytes](), list[bytes]()
    if is_shown:
        pushes = [_push(name, 8 * index) for index, name in enumerate(_PUSHED)]
        # rax comes last of them, with the flags below it.
        before = [*pushes, _SAVE_FLAGS, bytes.fromhex("488d7c24 08")]  # lea rdi, [rsp+8]
        after = [_LOAD_FLAGS, *(_pop(name) for name in reversed(_PUSHED))]
    else:
        # What it returns is nobody's.
        before = [_push("rdx", 0), *([_SAVE_FLAGS] if keeps_flags else [_push("rax", 0)])]
        after = [*([_LOAD_FLAGS] if keeps_flags else [_pop("rax")]), _pop("rdx")]
    if inlined is not None:
        code = text[entry : inlined[-1].next_ip] if inlined else b""
        return WrappedCallout(b"".join((*before, code, *after)))
    behind = b"".join(after) + _jump(len(text))
    return WrappedCallout(b"".join((*before, _call(len(behind) + entry), behind, text)))


class _Core(NamedTuple):
    """Instructions of a function that use no stack, and the numbers of the registers that they change."""

    instructions: list[Instruction]
    registers: tuple[int, ...]


def _take_core(body: list[Instruction]) -> _Core | None:
    """A function's body without what saves registers around it; None where anything else in it needs the stack, or it
    changes too many."""
    n = 0
    while 2 * n + 1 < len(body) and _saves(body[n], body[-1 - n]):
        n += 1
    saved = [one.op0_register for one in body[:n]]
    instructions = body[n : len(body) - n]
    end = instructions[-1].next_ip if instructions else 0
    if any("rsp" in registers_used(one) or not _stays(one, instructions[0].ip, end) for one in instructions):
        return None
    # A function that returns something saves no register for that.
    changed = {RegisterInfo(one).number for one in saved}
    changed |= {_NUMBERS[name] for one in instructions for name in registers_written(one) if name in _NUMBERS}
    return _Core(instructions, tuple(sorted(changed))) if len(changed) <= MAX_INLINE_REGISTERS else None


def _saves(first: Instruction, last: Instruction) -> bool:
    """Whether one instruction puts a register on the stack, and the other takes it from there."""
    return first.code == Code.PUSH_R64 and last.code == Code.POP_R64 and first.op0_register == last.op0_register


def _stays(one: Instruction, start: int, end: int) -> bool:
    """Whether it goes on between two addresses, or at the second."""
    return one.flow_control == FlowControl.NEXT or start <= one.near_branch_target <= end


def _reads_argument(one: Instruction) -> bool:
    return one.code != Code.PUSH_R64 and "rdi" in registers_read(one)


def _leaves(one: Instruction, start: int, end: int) -> bool:
    """Whether it goes on in another function, which may look at what this one was shown."""
    if one.flow_control in (FlowControl.NEXT, FlowControl.RETURN):
        return False
    return (not one.is_jcc_short_or_near and not one.is_jmp_short_or_near) or not start <= one.near_branch_target < end


def _inline(body: list[Instruction]) -> list[Instruction] | None:
    """The function without its return, if that is where it ends, and it goes nowhere else."""
    returns = body[-1] if body else None
    if returns is None or returns.code != Code.RETNQ:
        return None
    start, end = body[0].ip, returns.ip
    is_whole = all(
        one.flow_control == FlowControl.NEXT
        or ((one.is_jcc_short_or_near or one.is_jmp_short_or_near) and _stays(one, start, end))
        for one in body[:-1]
    )
    return body[:-1] if is_whole else None


def _push(name: str, n_pushed_bytes: int) -> bytes:
    if name == "rsp":
        # The program's: push [rsp + distance].
        return bytes.fromhex("ffb424") + n_pushed_bytes.to_bytes(4, "little")
    number = _NUMBERS[name]
    return (b"\x41" if number >= 8 else b"") + bytes([0x50 + number % 8])


def _pop(name: str) -> bytes:
    if name == "rsp":
        return bytes.fromhex("488d6424 08")  # lea rsp, [rsp+8]
    number = _NUMBERS[name]
    return (b"\x41" if number >= 8 else b"") + bytes([0x58 + number % 8])


def _call(distance: int) -> bytes:
    return b"\xe8" + distance.to_bytes(4, "little", signed=True)


def _jump(distance: int) -> bytes:
    return b"\xe9" + distance.to_bytes(4, "little", signed=True)
