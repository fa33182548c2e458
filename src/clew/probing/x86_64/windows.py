"""Runs of instructions that a jump may displace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple

from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.jump_bytes import ANY, JUMP_SIZE, TRAPS, JumpBytes
from clew.probing.x86_64.kinds import CALLS, ENDS, FIRST_FIXED, Kind
from clew.probing.x86_64.plans import Displaced, SitePlan, Technique

__all__ = [
    "NO_BRANCHES",
    "Forbidden",
    "Forbidding",
    "Surroundings",
    "Window",
    "grow_window",
    "plan_jump",
    "plan_puns",
    "run_of",
]


class Forbidden(NamedTuple):
    """Addresses from `start` to behind the last, `end`, that no patch may touch, and why: `reason` ends a sentence
    that begins with an instruction, as "is within a restartable sequence"."""

    start: int
    end: int
    reason: str


NO_BRANCHES: Final[Mapping[int, Sequence[Displaced]]] = {}


class Forbidding:
    """What forbids addresses, for those who have more of it than a list."""

    __slots__ = ()

    def find(self, start: int, end: int) -> str | None:
        """Why a patch may not touch these addresses; None if it may."""
        raise NotImplementedError


class Surroundings(NamedTuple):
    """A function's code, what else is known to lead into it (`entries`, and of them `branches`, by where they lead, if
    nothing but these does), and what may not be touched."""

    code: FunctionCode
    entries: AbstractSet[int]
    forbidden: Sequence[Forbidden] | Forbidding
    branches: Mapping[int, Sequence[Displaced]]

    def is_target(self, address: int) -> bool:
        """Whether something is known to lead there."""
        return address in self.code.targets or address in self.entries

    def find_forbidden(self, start: int, end: int) -> str | None:
        """Why a patch may not touch these addresses; None if it may."""
        if not self.forbidden:
            return None
        if isinstance(self.forbidden, Forbidding):
            return self.forbidden.find(start, end)
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
    wanted, n_own = patch + JUMP_SIZE, code.n_instructions
    targets, entries, forbidden = code.targets, around.entries, around.forbidden
    find_forbidden = forbidden.find if isinstance(forbidden, Forbidding) else around.find_forbidden
    index, is_padded, reason, displaced_end = first, False, "", 0
    while index <= last or starts[index] < wanted:
        if index > first and not is_padded and kinds[index - 1] in ENDS:
            is_padded, displaced_end = True, index
        kind = kinds[index] if index < n_own else FIRST_FIXED
        if not is_padded and kind < FIRST_FIXED:
            # As `_why_not` has it of most instructions, for whom it is not asked.
            at = starts[index]
            is_reached = index == first or (kinds[index - 1] not in CALLS and at not in targets and at not in entries)
            if is_reached and find_forbidden(at, starts[index + 1]) is None:
                index += 1
                continue
        reason = _why_not(around, first, index, is_padded=is_padded)
        if reason:
            break
        index += 1
    if index <= last:
        return None
    end = starts[index]
    free = min(end - patch, JUMP_SIZE)
    # Somebody may branch into the middle of an instruction, as past a lock prefix.
    within = range(patch + 1, end if last > first else patch + free)
    if not targets.isdisjoint(within) or not entries.isdisjoint(within):
        for inside in within:
            if around.is_target(inside) and inside not in code.index_of:
                if last > first:
                    return None
                free, reason = inside - patch, f"{inside:#x}, within an instruction, is branched to"
                break
    if not is_padded:
        displaced_end = index
    elif code.shape.unknown_jumps:
        # Padding that may be come to after all is displaced like any instruction, so that it is guarded.
        displaced_end = max(displaced_end, min(index, code.n_instructions))
    return Window(first, displaced_end, free, is_padded and index > displaced_end, reason)


def _why_not(around: Surroundings, first: int, index: int, *, is_padded: bool) -> str:
    """Why instruction `index` can't be a part of the window that begins with `first`, and has all in front of it."""
    code = around.code
    starts, kinds = code.starts, code.kinds
    at = starts[index]
    if index >= len(kinds):
        return f"{at:#x} is not known to be padding"
    kind = kinds[index]
    if index > first and (at in code.targets or at in around.entries):
        return f"{at:#x} is branched to"
    if is_padded:
        if kind not in (Kind.NOP, Kind.BREAKPOINT):
            return f"{at:#x} is no padding"
        # A case of a table that is not known may begin here, and somebody's breakpoint be in it.
        if kind == Kind.BREAKPOINT and code.unknown_jumps and index < code.n_instructions:
            return f"{at:#x} may be branched to"
    elif index >= code.n_instructions:
        return f"the function ends at {at:#x}"
    elif kind >= FIRST_FIXED:
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


def run_of(code: FunctionCode, first: int, end: int) -> tuple[int, bytes, bytes]:
    """Instructions from `first` to in front of `end`, as they are displaced: where they begin, their bytes, their
    sizes."""
    starts = code.starts
    start = starts[first]
    return start, code.code[start - code.start : starts[end] - code.start], code.shape.sizes[first:end]


def _make_plan(
    around: Surroundings, window: Window, address: int, probed: int, technique: Technique, reason: str
) -> SitePlan:
    code = around.code
    patch, run, sizes = run_of(code, window.first, window.end)
    at = patch - code.start
    guards = tuple(accumulate(sizes[:-1]))[:JUMP_SIZE] if len(sizes) > 1 else ()
    kept = code.code[at + window.free : at + JUMP_SIZE] if window.free < JUMP_SIZE else b""
    # Of a probe at the last instruction of a longer run the byte behind the jump traps as well.
    size = max(JUMP_SIZE, len(run) - sizes[-1] + 1) if guards else JUMP_SIZE
    jump = JumpBytes(patch, _allowed(guards, kept))
    original = code.code[at : at + size]
    return SitePlan(address, patch, technique, reason, patch, run, sizes, probed - window.first, original, jump)


@lru_cache(4096)
def _allowed(guards: tuple[int, ...], kept: bytes) -> tuple[tuple[int, ...], ...]:
    """The values of each byte of a distance: instructions begin at `guards`, so many bytes behind the jump's start, and
    the last bytes are `kept`. Of the same there is one, for there are many plans."""
    n_free = JUMP_SIZE - len(kept)
    free = (TRAPS if offset in guards else ANY for offset in range(1, n_free))
    return (*free, *((byte,) for byte in kept))
