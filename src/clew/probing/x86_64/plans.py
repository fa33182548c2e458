"""What is planned for one probe: what is written over the code, and which instructions run elsewhere instead."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

from clew.enumeration import IntEnum
from clew.probing.x86_64.jump_bytes import JUMP_SIZE, JumpBytes

__all__ = ["TRAP_BYTE", "Displaced", "SitePlan", "Technique"]

TRAP_BYTE = 0xCC
_TRAP = bytes((TRAP_BYTE,))


class Technique(IntEnum):
    """How a thread comes from the code to the probe, the best first."""

    JUMP = 1
    """A jump over one instruction."""
    JUMP_GUARDED = 2
    """A jump over several. A branch to one of them traps."""
    JUMP_PADDING = 3
    """A jump over the last instruction in front of padding, which nothing comes to, and over that."""
    JUMP_PUNNED = 4
    """A jump whose last bytes are those of the instructions behind what it displaces."""
    BRANCHES = 5
    """The branches that lead to the place lead to the copy. Whatever comes to it otherwise traps."""
    TRAP = 6
    """One byte: int3."""


class Displaced(NamedTuple):
    """An instruction that is executed elsewhere: where it is, and its bytes."""

    address: int
    code: bytes

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + len(self.code)


class SitePlan(NamedTuple):
    """A probe at the instruction at `address`, planted by writing over the bytes at `patch_address`.

    The copy of the instructions from `first` on is executed instead of these, which are `code`, with `sizes` that are a
    byte each, the probe in front of the one of index `probe_index`. `original` are the bytes that belong to the patch;
    nobody else may write there. `jump` says where it may lead; None: a trap is written. `reason` says why no better
    technique was taken; empty: there is none better. `branches` are direct branches with a distance of four bytes,
    which are to lead to the copy's start.
    """

    address: int
    patch_address: int
    technique: Technique
    reason: str
    first: int
    code: bytes
    sizes: bytes
    probe_index: int
    original: bytes
    jump: JumpBytes | None
    branches: tuple[Displaced, ...] = ()

    @property
    def displaced(self) -> tuple[Displaced, ...]:
        """The instructions that are displaced."""
        found, at = [], 0
        for size in self.sizes:
            found.append(Displaced(self.first + at, self.code[at : at + size]))
            at += size
        return tuple(found)

    @property
    def displaced_end(self) -> int:
        """The address behind them."""
        return self.first + len(self.code)

    @property
    def starts(self) -> list[int]:
        """Where they begin."""
        return list(accumulate(self.sizes[:-1], initial=self.first))

    @property
    def guards(self) -> dict[int, int]:
        """Addresses at which a thread traps that comes to them by a way that was not known, or that stood there, and
        the index of the displaced instruction with which it goes on; the byte of a trap is one."""
        if self.jump is None:
            return {self.patch_address: self.probe_index}
        return {at: index for index, at in enumerate(self.starts) if index}

    @property
    def patch_end(self) -> int:
        """The address behind the patch."""
        return self.patch_address + len(self.original)

    @property
    def claimed(self) -> tuple[tuple[int, int], ...]:
        """Ranges of addresses, each to behind the last, whose bytes have to stay what they are: other probes may not be
        planted there, but they may share this one's copy (`find_index`)."""
        displaced = min(self.patch_address, self.first), max(self.patch_end, self.displaced_end)
        return (displaced, *((branch.address, branch.end) for branch in self.branches))

    def find_displaced(self, address: int) -> int | None:
        """The index of the displaced instruction at an address."""
        at = self.first
        for index, size in enumerate(self.sizes):
            if at >= address:
                return index if at == address else None
            at += size
        return None

    def find_index(self, address: int) -> int | None:
        """The same, if all that comes to it comes to its copy: a probe there may share this one's patch."""
        if address == self.patch_address:
            if address == self.first:
                return 0
            return self.probe_index if self.jump is None else None
        return None if self.jump is None or address == self.first else self.find_displaced(address)

    def disturbs(self, address: int) -> bool:
        """Whether a probe at an address, which is that of an instruction, could neither share this one's patch nor be
        planted beside it."""
        return self.find_index(address) is None and any(start <= address < end for start, end in self.claimed)

    def patch(self, trampoline: int) -> bytes:
        """What is written over `original`, for a trampoline there. Raises ValueError if the jump can't lead there."""
        if self.jump is None:
            return _TRAP
        jump = self.jump.encode(trampoline)
        if len(self.original) == JUMP_SIZE:
            return jump
        patch = bytearray(self.original)
        patch[:JUMP_SIZE] = jump
        for address in self.guards:
            # Those within the jump have a byte of the distance that traps.
            if address - self.patch_address >= JUMP_SIZE:
                patch[address - self.patch_address] = TRAP_BYTE
        return bytes(patch)
