"""A function's code, decoded once from its start to its end, with what is known to branch into it.

What other code knows of it (symbols in its middle, tails that it shares with others) is for whoever plans probes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from iced_x86 import Decoder

from clew.dataclass import dataclass
from clew.errors import UsageError
from clew.probing.x86_64.jump_tables import find_table_targets
from clew.probing.x86_64.kinds import CALLS, ENDS, Kind, find_kind, why_fixed

__all__ = ["FunctionCode", "ReadMemory", "decode_function"]

ReadMemory = Callable[[int, int], bytes]
"""Up to so many bytes (second) of memory at an address (first); fewer where it ends."""

MAX_TABLES = 4096
"""Of a function's indirect jumps no more are looked at."""
_BEHIND = 4
"""So many bytes of what follows may be a part of a jump."""
_DIRECT = frozenset((Kind.CALL, Kind.JUMP, Kind.CONDITIONAL))
_BRANCHES = _DIRECT | {Kind.INDIRECT_CALL, Kind.INDIRECT_JUMP}


@dataclass(frozen=True)
class FunctionCode:
    """Code from `start` to `end`, and the padding behind it: `code` holds both, and a few bytes more.

    `starts` are the addresses of all instructions, those of the padding too, and where the last one ends; the
    first `n_instructions` are the function's own. `kinds` has a `Kind` for each. `branches` are the direct
    branches to each address inside (calls among them), `tables` the targets of each indirect jump whose table is
    known, `unknown_jumps` the other indirect jumps: through a register or memory, out of the function or not.
    `outgoing` are direct branches and calls that lead out of the function, and where to, `leaving` those by which
    it is left, to its own start among them. `outside` are all targets that lie elsewhere, of tables too. `fixed`
    says why an instruction can't be displaced.
    """

    start: int
    end: int
    code: bytes
    starts: list[int]
    kinds: bytes
    n_instructions: int
    index_of: dict[int, int]
    branches: dict[int, tuple[int, ...]]
    tables: dict[int, tuple[int, ...]]
    unknown_jumps: tuple[int, ...]
    outgoing: tuple[tuple[int, int], ...]
    leaving: tuple[tuple[int, int], ...]
    outside: frozenset[int]
    fixed: dict[int, str]
    targets: frozenset[int]
    """All addresses inside that are known to be branched to."""

    def locate(self, address: int) -> int:
        """The index of the instruction at an address. Raises UsageError if none starts there."""
        index = self.index_of.get(address)
        if index is not None and index < self.n_instructions:
            return index
        if not self.start <= address < self.end:
            raise UsageError(f"{address:#x}: not in the function at {self.start:#x}")
        enclosing = self.starts[bisect_right(self.starts, address) - 1]
        raise UsageError(f"{address:#x}: in the middle of the instruction at {enclosing:#x}")

    def moved(self, by: int) -> FunctionCode:
        """The same code so many bytes higher."""

        def move_all(places: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(one + by for one in places)

        return FunctionCode(
            start=self.start + by,
            end=self.end + by,
            code=self.code,
            starts=[one + by for one in self.starts],
            kinds=self.kinds,
            n_instructions=self.n_instructions,
            index_of={one + by: index for one, index in self.index_of.items()},
            branches={target + by: move_all(sources) for target, sources in self.branches.items()},
            tables={source + by: move_all(targets) for source, targets in self.tables.items()},
            unknown_jumps=move_all(self.unknown_jumps),
            outgoing=tuple((source + by, target + by) for source, target in self.outgoing),
            leaving=tuple((source + by, target + by) for source, target in self.leaving),
            outside=frozenset(one + by for one in self.outside),
            fixed={one + by: why for one, why in self.fixed.items()},
            targets=frozenset(one + by for one in self.targets),
        )

    def bytes_of(self, index: int) -> bytes:
        """The bytes of instruction `index`."""
        return self.code[self.starts[index] - self.start : self.starts[index + 1] - self.start]


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
    end = start + min(len(code) if size_bytes is None else size_bytes, len(code))
    starts: list[int] = []
    kinds = bytearray()
    branches: dict[int, list[int]] = {}
    indirect: list[int] = []
    fixed: dict[int, str] = {}
    outgoing: list[tuple[int, int]] = []
    leaving: list[tuple[int, int]] = []
    at, n_own = start, 0
    for one in Decoder(64, code, ip=start):
        kind = find_kind(one)
        if at >= end and kind not in (Kind.NOP, Kind.BREAKPOINT):
            break
        starts.append(at)
        n_own += at < end
        size = one.len
        if kind in _BRANCHES or kind >= Kind.BREAKPOINT:
            why = why_fixed(one, code[at - start : at - start + size])
            if why is not None:
                fixed[at] = why
                kind = max(kind, Kind.FIXED) if kind != Kind.BREAKPOINT else kind
            if kind in _DIRECT:
                target = one.near_branch_target
                if start <= target < end:
                    branches.setdefault(target, []).append(at)
                else:
                    outgoing.append((at, target))
                if kind != Kind.CALL and (target == start or not start <= target < end):
                    leaving.append((at, target))
            elif kind == Kind.INDIRECT_JUMP:
                indirect.append(len(starts) - 1)
        kinds.append(kind)
        at += size
    # An instruction that is cut off by the end of the bytes is none; the last one may reach over the function's end.
    starts.append(at)
    # What stands behind the last way out is padding, whatever the size counts.
    trimmed = n_own
    while trimmed and kinds[trimmed - 1] in (Kind.NOP, Kind.BREAKPOINT) and starts[trimmed - 1] not in branches:
        trimmed -= 1
    if trimmed and kinds[trimmed - 1] in ENDS | CALLS:
        n_own = trimmed
    index_of = dict(zip(starts, range(len(kinds)), strict=False))
    outside = {target for _, target in outgoing}
    tables: dict[int, tuple[int, ...]] = {}
    unknown = []
    for number, index in enumerate(indirect):
        found: tuple[int, ...] = ()
        if read is not None and number < MAX_TABLES:
            found = find_table_targets(starts, code, index, end, index_of, read)
        if found:
            tables[starts[index]] = found
            outside.update(target for target in found if not start <= target < end)
        else:
            unknown.append(starts[index])
    inside = {target for found in tables.values() for target in found if start <= target < end}
    # Where a call returns to is not among them: a displaced call is the last of what is displaced.
    return FunctionCode(
        start=start,
        end=starts[n_own],
        code=(code + following[:_BEHIND])[: at - start + _BEHIND],
        starts=starts,
        kinds=bytes(kinds),
        n_instructions=n_own,
        index_of=index_of,
        branches={target: tuple(sources) for target, sources in branches.items()},
        tables=tables,
        unknown_jumps=tuple(unknown),
        outgoing=tuple(outgoing),
        leaving=tuple(leaving),
        outside=frozenset(outside),
        fixed=fixed,
        targets=frozenset(branches) | inside,
    )
