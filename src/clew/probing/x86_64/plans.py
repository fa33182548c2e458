"""What is planned for one probe: what is written over the code, and which instructions run elsewhere instead."""

from __future__ import annotations

from typing import NamedTuple

from clew.enumeration import IntEnum
from clew.probing.x86_64.jump_bytes import JUMP_SIZE, JumpBytes

__all__ = ["TRAP_BYTE", "Displaced", "SitePlan", "Technique"]

TRAP_BYTE = 0xCC


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

    The copy of `displaced` is executed instead of these, the probe in front of the one of index `probe_index`.
    `original` are the bytes that belong to the patch; nobody else may write there. `jump` says where it may lead; None:
    a trap is written. `guards` are addresses at which a thread traps that comes to them by a way that was not known, or
    that stood there, and the index of the displaced instruction with which it goes on; the byte of a trap is one.
    `reason` says why no better technique was taken; empty: there is none better. `branches` are direct branches with a
    distance of four bytes, which are to lead to the copy's start.
    """

    address: int
    patch_address: int
    technique: Technique
    reason: str
    displaced: tuple[Displaced, ...]
    probe_index: int
    original: bytes
    jump: JumpBytes | None
    guards: dict[int, int]
    branches: tuple[Displaced, ...] = ()

    @property
    def patch_end(self) -> int:
        """The address behind the patch."""
        return self.patch_address + len(self.original)

    @property
    def claimed(self) -> tuple[tuple[int, int], ...]:
        """Ranges of addresses, each to behind the last, whose bytes have to stay what they are: other probes may not be
        planted there, but they may share this one's copy (`find_index`)."""
        displaced = min(self.patch_address, self.displaced[0].address), max(self.patch_end, self.displaced[-1].end)
        return (displaced, *((branch.address, branch.end) for branch in self.branches))

    def find_index(self, address: int) -> int | None:
        """The index of the displaced instruction at an address, if all that comes to it comes to its copy: a probe
        there may share this one's patch."""
        if self.displaced[0].address == address == self.patch_address:
            return 0
        return self.guards.get(address)

    def disturbs(self, address: int) -> bool:
        """Whether a probe at an address, which is that of an instruction, could neither share this one's patch nor be
        planted beside it."""
        return self.find_index(address) is None and any(start <= address < end for start, end in self.claimed)

    def patch(self, trampoline: int) -> bytes:
        """What is written over `original`, for a trampoline there. Raises ValueError if the jump can't lead there."""
        if self.jump is None:
            return bytes((TRAP_BYTE,))
        patch = bytearray(self.original)
        patch[:JUMP_SIZE] = self.jump.encode(trampoline)
        for address in self.guards:
            # Those within the jump have a byte of the distance that traps.
            if address - self.patch_address >= JUMP_SIZE:
                patch[address - self.patch_address] = TRAP_BYTE
        return bytes(patch)
