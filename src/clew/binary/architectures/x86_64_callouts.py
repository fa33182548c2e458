"""A compiled function as it is called in the middle of a block of x86-64, where every register is somebody's.

Runs in the controller. The function saves what it changes (GCC's attribute no_caller_saved_registers); what is left are
the flags. It runs on a stack of the runtime's, which has the program's stack pointer on top.
"""

from __future__ import annotations

from typing import Final

from iced_x86 import Code, Decoder, FlowControl, Instruction

from clew.binary.architectures.x86_64_details import registers_read

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


def wrap_callout(text: bytes, entry: int, size_bytes: int, *, keeps_flags: bool) -> bytes:
    """Machine code that calls the function at `entry` of some code, wherever it is put: it changes no register but what
    the function changes in the registers that it is shown, and flags only if it need not keep them."""
    end = entry + size_bytes
    body = list(Decoder(64, text[entry:end], ip=entry))
    is_shown = any(_reads_argument(one) or _leaves(one, entry, end) for one in body)
    before, after = list[bytes](), list[bytes]()
    if is_shown:
        pushes = [_push(name, 8 * index) for index, name in enumerate(_PUSHED)]
        # rax comes last of them, with the flags below it.
        before = [*pushes, _SAVE_FLAGS, bytes.fromhex("488d7c24 08")]  # lea rdi, [rsp+8]
        after = [_LOAD_FLAGS, *(_pop(name) for name in reversed(_PUSHED))]
    elif keeps_flags:
        before, after = [_SAVE_FLAGS], [_LOAD_FLAGS]
    inlined = _inline(body, text[entry:end])
    if inlined is not None:
        return b"".join((*before, inlined, *after))
    behind = b"".join(after) + _jump(len(text))
    return b"".join((*before, _call(len(behind) + entry), behind, text))


def _reads_argument(one: Instruction) -> bool:
    return one.code != Code.PUSH_R64 and "rdi" in registers_read(one)


def _leaves(one: Instruction, start: int, end: int) -> bool:
    """Whether it goes on in another function, which may look at what this one was shown."""
    if one.flow_control in (FlowControl.NEXT, FlowControl.RETURN):
        return False
    return (not one.is_jcc_short_or_near and not one.is_jmp_short_or_near) or not start <= one.near_branch_target < end


def _inline(body: list[Instruction], code: bytes) -> bytes | None:
    """The function without its return, if that is where it ends, and nothing else in it goes elsewhere."""
    flow = [one for one in body if one.flow_control != FlowControl.NEXT]
    if len(flow) != 1 or flow[0].code != Code.RETNQ or body[-1] != flow[0]:
        return None
    return code[: -flow[0].len]


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
