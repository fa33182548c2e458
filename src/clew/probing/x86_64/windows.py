"""Runs of instructions that a jump may displace."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from clew.dataclass import dataclass
from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.jump_bytes import ANY, JUMP_SIZE, TRAPS, JumpBytes
from clew.probing.x86_64.kinds import CALLS, ENDS, Kind
from clew.probing.x86_64.plans import Displaced, SitePlan, Technique

__all__ = [
    "NO_BRANCHES",
    "Forbidden",
    "Surroundings",
    "Window",
    "displaced_of",
    "grow_window",
    "plan_jump",
    "plan_puns",
]


class Forbidden(NamedTuple):
    """Addresses from `start` to behind the last, `end`, that no patch may touch, and why: `reason` ends a sentence
    that begins with an instruction, as "is within a restartable sequence"."""

    start: int
    end: int
    reason: str


NO_BRANCHES: Final[Mapping[int, Sequence[Displaced]]] = {}


@dataclass(frozen=True)
class Surroundings:
    """A function's code, what else is known to lead into it (`entries`, and of them `branches`, by where they lead, if
    nothing but these does), and what may not be touched."""

    code: FunctionCode
    entries: Collection[int]
    forbidden: Sequence[Forbidden]
    branches: Mapping[int, Sequence[Displaced]]

    def is_target(self, address: int) -> bool:
        """Whether something is known to lead there."""
        return address in self.code.targets or address in self.entries

    def find_forbidden(self, start: int, end: int) -> str | None:
        """Why a patch may not touch these addresses; None if it may."""
        return next((one.reason for one in self.forbidden if start < one.end and one.start < end), None)


class Window(NamedTuple):
    """Instructions from index `first` to in front of `end` that are displaced together; `free` bytes from there on may
    be changed, padding behind them if it `is_padded`. If these are fewer than a jump has, `reason` says why."""

    first: int
    end: int
    free: int
    is_padded: bool
    reason: str


def grow_window(around: Surroundings, first: int, last: int) -> Window | None:
    """The window that begins with instruction `first` and has at least all up to `last`; None if there is none."""
    code = around.code
    starts, kinds = code.starts, code.kinds
    patch = starts[first]
    index, is_padded, reason = first, False, ""
    while index <= last or starts[index] < patch + JUMP_SIZE:
        if index > first and kinds[index - 1] in ENDS:
            is_padded = True
        reason = _why_not(around, first, index, is_padded=is_padded)
        if reason:
            break
        index += 1
    if index <= last:
        return None
    end = starts[index]
    free = min(end - patch, JUMP_SIZE)
    # Somebody may branch into the middle of an instruction, as past a lock prefix.
    for inside in range(patch + 1, end if last > first else patch + free):
        if around.is_target(inside) and inside not in code.index_of:
            if last > first:
                return None
            free, reason = inside - patch, f"{inside:#x}, within an instruction, is branched to"
            break
    displaced_end = index
    if is_padded:
        # Padding that may be come to after all is displaced like any instruction, so that it is guarded.
        displaced_end = next(at for at in range(first, index) if kinds[at] in ENDS) + 1
        if code.unknown_jumps:
            displaced_end = max(displaced_end, min(index, code.n_instructions))
    return Window(first, displaced_end, free, is_padded and index > displaced_end, reason)


def _why_not(around: Surroundings, first: int, index: int, *, is_padded: bool) -> str:
    """Why instruction `index` can't be a part of the window that begins with `first`, and has all in front of it."""
    code = around.code
    starts, kinds = code.starts, code.kinds
    at = starts[index]
    if index >= len(kinds):
        return f"{at:#x} is not known to be padding"
    if index > first and around.is_target(at):
        return f"{at:#x} is branched to"
    if is_padded:
        if kinds[index] not in (Kind.NOP, Kind.BREAKPOINT):
            return f"{at:#x} is no padding"
        # A case of a table that is not known may begin here, and somebody's breakpoint be in it.
        if kinds[index] == Kind.BREAKPOINT and code.unknown_jumps and index < code.n_instructions:
            return f"{at:#x} may be branched to"
    elif index >= code.n_instructions:
        return f"the function ends at {at:#x}"
    elif at in code.fixed:
        return f"the instruction at {at:#x} {code.fixed[at]}"
    elif index > first and kinds[index - 1] in CALLS:
        # Its return address stays what it is, so what is there has to stay there.
        return f"the call at {starts[index - 1]:#x} returns to {at:#x}"
    why = around.find_forbidden(at, starts[index + 1])
    return f"the instruction at {at:#x} {why}" if why else ""


def plan_jump(around: Surroundings, window: Window, address: int, probed: int) -> SitePlan | None:
    """A jump over a whole window, for a probe at instruction `probed` of it; None if there is no room for one."""
    if window.free < JUMP_SIZE:
        return None
    if window.is_padded:
        technique, reason = Technique.JUMP_PADDING, "only padding makes room for a jump"
    elif window.end - window.first > 1:
        technique, reason = Technique.JUMP_GUARDED, "the instruction is shorter than a jump"
    else:
        technique, reason = Technique.JUMP, ""
    return _make_plan(around, window, address, probed, technique, reason)


def plan_puns(around: Surroundings, window: Window, address: int, probed: int) -> Iterator[SitePlan]:
    """Jumps whose last bytes stay what they are: over as much of a window as may be displaced, and over less of it."""
    code = around.code
    starts = code.starts
    patch = starts[window.first]
    reason = window.reason or "no trampoline can be where a jump over more could lead"
    for end in range(window.end, probed, -1):
        free = window.free if end == window.end else min(window.free, starts[end] - patch)
        if free >= JUMP_SIZE or starts[end - 1] - patch >= free:
            continue
        kept_ends = len(code.code) >= patch + JUMP_SIZE - code.start
        if not kept_ends or around.find_forbidden(patch + free, patch + JUMP_SIZE):
            continue
        part = Window(window.first, end, free, window.is_padded, reason)
        yield _make_plan(around, part, address, probed, Technique.JUMP_PUNNED, reason)


def displaced_of(code: FunctionCode, first: int, end: int) -> tuple[Displaced, ...]:
    """Instructions from `first` to in front of `end`, as they are displaced."""
    return tuple(Displaced(code.starts[index], code.bytes_of(index)) for index in range(first, end))


def _make_plan(
    around: Surroundings, window: Window, address: int, probed: int, technique: Technique, reason: str
) -> SitePlan:
    code = around.code
    starts = code.starts
    patch = starts[window.first]
    at = patch - code.start
    guards = {starts[index]: index - window.first for index in range(window.first + 1, window.end)}
    allowed: list[tuple[int, ...]] = []
    for offset in range(1, JUMP_SIZE):
        if offset >= window.free:
            allowed.append((code.code[at + offset],))
        else:
            allowed.append(TRAPS if patch + offset in guards else ANY)
    # Of a probe at the last instruction of a longer run the byte behind the jump traps as well.
    size = max(JUMP_SIZE, *(guard + 1 - patch for guard in guards)) if guards else JUMP_SIZE
    return SitePlan(
        address=address,
        patch_address=patch,
        technique=technique,
        reason=reason,
        displaced=displaced_of(code, window.first, window.end),
        probe_index=probed - window.first,
        original=code.code[at : at + size],
        jump=JumpBytes(patch, tuple(allowed)),
        guards=guards,
    )
