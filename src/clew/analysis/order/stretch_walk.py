"""A walk along a part of a thread's path: the codec's, with the code that it goes through.

Runs in the controller. Which part it is, and where that is stored, is not known here.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from clew.analysis.order.path_code import ProcessCode
from clew.binary.path_codec import MOST, PathState, PathWalk
from clew.protocol.codec import Stop
from clew.protocol.codec_layouts import Position

__all__ = ["StretchWalk"]

Array = npt.NDArray[Any]


class StretchWalk:
    """A walk along one stretch. `walk` and `advance` are the codec's."""

    def __init__(self, code: ProcessCode, walk: PathWalk) -> None:
        self.code = code
        self._walk = walk

    @property
    def stop(self) -> Stop:
        """Why it can't go on; ASKED while it can."""
        return self._walk.stop

    def read(self, n: int) -> Array:
        """The next blocks executed, indices (u32), at most `n`."""
        return self._walk.walk(n)

    def skip(self, instructions: int = MOST, executions: int = MOST) -> tuple[int, int]:
        """Go on by whole blocks, at most so many, of no more than `instructions`: how many of both were executed."""
        return self._walk.advance(instructions, executions)

    def skip_to(self, block: int, n: int) -> tuple[int, int, int]:
        """Go on up to the `n`-th execution of a block (index) from here, counted from 0, or as far as it goes: how many
        instructions and blocks were executed, and how often this one."""
        return self._walk.advance_to(block, n)

    def count(self, block: int, executions: int) -> int:
        """Go on by so many blocks, or as far as it goes: how often a block (index) was executed."""
        return self._walk.advance_counting(block, executions)

    def skip_until(self, surprise_bytes: int, decisions: int) -> tuple[int, int]:
        """Go on until so many bytes of surprises are read and so many decisions made behind the last one, or as far as
        it goes: how many instructions and blocks were executed."""
        return self._walk.advance_until(surprise_bytes, decisions)

    def place(self) -> tuple[Position, int]:
        """The position, and the block that would run next."""
        position, block, _ = self._walk.place()
        return position, block

    def state(self, *, has_blocks: bool = True) -> PathState:
        """All that another walk needs to go on from here; the blocks may be left out."""
        return self._walk.state(has_blocks=has_blocks)

    def open_calls(self) -> Array:
        """Return addresses (u64) of the open calls, the outermost first, without those that were forgotten."""
        return self._walk.state(has_blocks=False).addresses
