"""A function's code, decoded once from its start to its end, with what is known to branch into it.

What other code knows of it (symbols in its middle, tails that it shares with others) is for whoever plans probes. A
program has millions of instructions, of which each is looked at for a moment: what is kept of them is two bytes, and
the rest is worked out again of functions that are asked for.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from itertools import accumulate
from typing import Final, Literal, NamedTuple

from iced_x86 import Decoder, Instruction

from clew.errors import UsageError
from clew.probing.x86_64.jump_tables import find_table_targets
from clew.probing.x86_64.kinds import CALLS, ENDS, FIRST_FIXED, PLAIN_OPCODES, Kind, find_kinds, why_fixed

__all__ = ["FunctionCode", "FunctionShape", "ReadMemory", "decode_function"]

ReadMemory = Callable[[int, int], bytes]
"""Up to so many bytes (second) of memory at an address (first); fewer where it ends."""

MAX_TABLES = 4096
"""Of a function's indirect jumps no more are looked at."""
_BEHIND = 4
"""So many bytes of what follows may be a part of a jump."""
_PADDING_BYTES: Final = 64
"""Behind most functions there is no more padding."""
_LONGEST: Final = 15
"""No instruction has more bytes."""
_CALL, _INDIRECT_JUMP = int(Kind.CALL), int(Kind.INDIRECT_JUMP)
_DIRECT = frozenset((_CALL, int(Kind.JUMP), int(Kind.CONDITIONAL)))
_TO_LOOK_AT: Final = re.compile(
    b"[%s]"
    % b"".join(
        re.escape(bytes((kind,)))
        for kind in (*_DIRECT, Kind.INDIRECT_CALL, Kind.INDIRECT_JUMP, Kind.BREAKPOINT, Kind.FIXED, Kind.BAD)
    )
)
_MAX_EXPANDED: Final = 64
_GROUP_5: Final = 0xFF
_HALF, _MASK = 1 << 63, (1 << 64) - 1


class FunctionShape(NamedTuple):
    """What is kept of a function, wherever it lies: places in it are distances from its start.

    `sizes` and `kinds` have a byte for each instruction. `inner` are its direct branches that lead into it, `outer` the
    others: words of 4 and of 8 bytes, the index of the branch and where it leads in turns, as in `leaving`. The rest is
    as `FunctionCode` has it.
    """

    n_bytes: int
    code: bytes
    sizes: bytes
    kinds: bytes
    n_instructions: int
    inner: bytes
    outer: bytes
    leaving: tuple[tuple[int, int], ...]
    tables: dict[int, tuple[int, ...]]
    unknown_jumps: tuple[int, ...]
    fixed: dict[int, str]
    reach: int
    """Targets below that are inside: the bytes that were to be the function's, padding at its end among them."""


class _Expanded:
    """What is worked out of a function's instructions while it is asked for."""

    __slots__ = ("branches", "index_of", "starts", "targets")

    def __init__(self, starts: list[int]) -> None:
        self.starts = starts
        self.index_of: dict[int, int] | None = None
        self.branches: dict[int, tuple[int, ...]] | None = None
        self.targets: frozenset[int] | None = None


class FunctionCode:
    """Code from `start` to `end`, and the padding behind it: `code` holds both, and a few bytes more.

    `starts` are the addresses of all instructions, those of the padding too, and where the last one ends; the
    first `n_instructions` are the function's own. `kinds` has a `Kind` for each. `branches` are the direct
    branches to each address inside (calls among them), `tables` the targets of each indirect jump whose table is
    known, `unknown_jumps` the other indirect jumps: through a register or memory, out of the function or not.
    `outgoing` are direct branches and calls that lead out of the function, and where to, `leaving` those by which
    it is left, to its own start among them. `outside` are all targets that lie elsewhere, of tables too. `fixed`
    says why an instruction can't be displaced, `targets` are all addresses inside that are known to be branched to.
    """

    __slots__ = ("_expanded", "code", "end", "kinds", "n_instructions", "shape", "start")

    def __init__(self, start: int, shape: FunctionShape) -> None:
        self.start, self.end, self.shape = start, start + shape.n_bytes, shape
        self.code, self.kinds, self.n_instructions = shape.code, shape.kinds, shape.n_instructions
        self._expanded: _Expanded | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionCode) and self.start == other.start and self.shape == other.shape

    __hash__ = None  # type: ignore[assignment]

    def _expand(self) -> _Expanded:
        starts = list(accumulate(self.shape.sizes, initial=self.start))
        found = self._expanded = _Expanded(starts)
        _recent.append(self)
        if len(_recent) > _MAX_EXPANDED:
            _recent.popleft()._expanded = None
        return found

    @property
    def starts(self) -> list[int]:
        return (self._expanded or self._expand()).starts

    @property
    def index_of(self) -> dict[int, int]:
        expanded = self._expanded or self._expand()
        if expanded.index_of is None:
            expanded.index_of = dict(zip(expanded.starts, range(len(self.kinds)), strict=False))
        return expanded.index_of

    @property
    def targets(self) -> frozenset[int]:
        expanded = self._expanded or self._expand()
        found = expanded.targets
        if found is None:
            start, reach = self.start, self.shape.reach
            led = [start + one for one in memoryview(self.shape.inner).cast("I")[1::2]]
            inside = (start + one for table in self.shape.tables.values() for one in table if 0 <= one < reach)
            found = expanded.targets = frozenset((*led, *inside))
        return found

    @property
    def branches(self) -> dict[int, tuple[int, ...]]:
        expanded = self._expanded or self._expand()
        if expanded.branches is None:
            found: dict[int, list[int]] = {}
            for index, target in _pairs(self.shape.inner, "I"):
                found.setdefault(self.start + target, []).append(expanded.starts[index])
            expanded.branches = {target: tuple(sources) for target, sources in found.items()}
        return expanded.branches

    @property
    def tables(self) -> dict[int, tuple[int, ...]]:
        start = self.start
        return {start + at: tuple(start + one for one in found) for at, found in self.shape.tables.items()}

    @property
    def unknown_jumps(self) -> tuple[int, ...]:
        return tuple([self.start + one for one in self.shape.unknown_jumps]) if self.shape.unknown_jumps else ()

    @property
    def fixed(self) -> dict[int, str]:
        fixed = self.shape.fixed
        return {self.start + one: why for one, why in fixed.items()} if fixed else fixed

    @property
    def outgoing(self) -> tuple[tuple[int, int], ...]:
        starts, start = self.starts, self.start
        return tuple((starts[index], start + led & _MASK) for index, led in _pairs(self.shape.outer, "q"))

    @property
    def leaving(self) -> tuple[tuple[int, int], ...]:
        if not self.shape.leaving:
            return ()
        starts, start = self.starts, self.start
        return tuple((starts[index], start + led & _MASK) for index, led in self.shape.leaving)

    @property
    def outside(self) -> frozenset[int]:
        start, reach = self.start, self.shape.reach
        found = {start + led & _MASK for _, led in _pairs(self.shape.outer, "q")}
        found.update(start + one for table in self.shape.tables.values() for one in table if not 0 <= one < reach)
        return frozenset(found)

    def locate(self, address: int) -> int:
        """The index of the instruction at an address. Raises UsageError if none starts there."""
        if not self.start <= address < self.end:
            raise UsageError(f"{address:#x}: not in the function at {self.start:#x}")
        if address == self.start:
            return 0
        starts = self.starts
        index = bisect_right(starts, address) - 1
        enclosing = starts[index]
        if enclosing == address:
            return index
        raise UsageError(f"{address:#x}: in the middle of the instruction at {enclosing:#x}")

    def bytes_of(self, index: int) -> bytes:
        """The bytes of instruction `index`."""
        starts = self.starts
        return self.code[starts[index] - self.start : starts[index + 1] - self.start]


_recent: deque[FunctionCode] = deque()
"""Those that are expanded, the one that was first expanded first."""


def _pairs(words: bytes, kind: Literal["I", "q"]) -> list[tuple[int, int]]:
    """What lies one behind the other in turns."""
    if not words:
        return []
    values = memoryview(words).cast(kind).tolist()
    return list(zip(values[::2], values[1::2], strict=True))


def _decode(start: int, code: bytes, end: int) -> tuple[list[Instruction], bytes, bytes]:
    """The instructions from `start` up to where `end` and the padding behind it are over; their sizes, and kinds."""
    # Behind padding there is other code, or there are data.
    for n_bytes in (min(end - start + _PADDING_BYTES, len(code)), len(code)):
        instructions = list(Decoder(64, code[:n_bytes], ip=start))
        kinds, sizes = find_kinds(instructions), bytes(map(len, instructions))
        at, index = start + sum(sizes), len(sizes)
        while index and at - sizes[index - 1] >= end:
            index -= 1
            at -= sizes[index]
        # The one at `index` is the first that begins behind the function.
        while index < len(kinds) and kinds[index] in (Kind.NOP, Kind.BREAKPOINT):
            at += sizes[index]
            index += 1
        if n_bytes == len(code) or (index < len(kinds) and at + _LONGEST <= start + n_bytes):
            break
    return instructions[:index], sizes[:index], kinds[:index]


def decode_function(
    start: int,
    code: bytes,
    size_bytes: int | None = None,
    read: ReadMemory | None = None,
    following: bytes = b"",
) -> FunctionCode:
    """The function at `start`. `code` may go on behind its `size_bytes`, up to where other code begins: that is looked
    through for padding. `following` are a few bytes of what is behind that. Jump tables are looked for where `read`
    gives memory."""
    reach = min(len(code) if size_bytes is None else size_bytes, len(code))
    instructions, sizes, found_kinds = _decode(start, code, start + reach)
    kinds = bytearray(found_kinds)
    # An instruction that is cut off by the end of the bytes is none; the last one may reach over the function's end.
    offsets = list(accumulate(sizes, initial=0))
    inner: list[int] = []
    outer: list[int] = []
    leaving: list[tuple[int, int]] = []
    indirect: list[int] = []
    fixed: dict[int, str] = {}
    for match in _TO_LOOK_AT.finditer(found_kinds):
        index = match.start()
        one, kind, at = instructions[index], kinds[index], offsets[index]
        byte = code[at]
        if byte not in PLAIN_OPCODES or kind >= FIRST_FIXED or (byte == _GROUP_5 and kind != _INDIRECT_JUMP):
            # A copy of it may do something else.
            why = why_fixed(one, code[at : offsets[index + 1]])
            if why is not None:
                fixed[at] = why
                kind = kinds[index] = max(kind, Kind.FIXED) if kind != Kind.BREAKPOINT else kind
        if kind in _DIRECT:
            led = (one.near_branch_target - start + _HALF & _MASK) - _HALF
            is_inside = 0 <= led < reach
            if is_inside:
                inner += (index, led)
            else:
                outer += (index, led)
            if kind != _CALL and not (is_inside and led):
                leaving.append((index, led))
        elif kind == _INDIRECT_JUMP:
            indirect.append(index)
    n_own = len(sizes)
    while n_own and offsets[n_own - 1] >= reach:
        n_own -= 1
    # What stands behind the last way out is padding, whatever the size counts.
    trimmed = n_own
    led_to = set(inner[1::2]) if trimmed and kinds[trimmed - 1] in (Kind.NOP, Kind.BREAKPOINT) else set()
    while trimmed and kinds[trimmed - 1] in (Kind.NOP, Kind.BREAKPOINT) and offsets[trimmed - 1] not in led_to:
        trimmed -= 1
    if trimmed and kinds[trimmed - 1] in ENDS | CALLS:
        n_own = trimmed
    tables: dict[int, tuple[int, ...]] = {}
    unknown = []
    known = {start + offset for offset in offsets[:-1]} if indirect and read is not None else set()
    for number, index in enumerate(indirect):
        found: tuple[int, ...] = ()
        if read is not None and number < MAX_TABLES:
            found = find_table_targets(instructions, index, range(start, start + reach), known, read)
        if found:
            tables[offsets[index]] = tuple(target - start for target in found)
        else:
            unknown.append(offsets[index])
    # Where a call returns to is not among what is branched to: a displaced call is the last of what is displaced.
    shape = FunctionShape(
        n_bytes=offsets[n_own],
        code=(code + following[:_BEHIND])[: offsets[-1] + _BEHIND] if following else code[: offsets[-1] + _BEHIND],
        sizes=sizes,
        kinds=bytes(kinds),
        n_instructions=n_own,
        inner=array("I", inner).tobytes(),
        outer=array("q", outer).tobytes(),
        leaving=tuple(leaving),
        tables=tables or _NONE,
        unknown_jumps=tuple(unknown),
        fixed=fixed or _NO_REASONS,
        reach=reach,
    )
    return FunctionCode(start, shape)


_NONE: Final[dict[int, tuple[int, ...]]] = {}
_NO_REASONS: Final[dict[int, str]] = {}
