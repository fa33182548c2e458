"""A function that chooses the one that is meant, when that is bound: the resolver of an IFUNC.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clew.dataclass import dataclass

if TYPE_CHECKING:
    from clew.sessions.call_logs import CallLog
    from clew.sessions.memory import Image
    from clew.sessions.where import Where

__all__ = ["Chooser"]


@dataclass(frozen=True)
class Chooser:
    """It is at `where`, by an offset in `image`, and `where.symbol` is what calls of its choice are told by.

    These come to `log`; `note` is told of each choice, and whether it is recorded there: one function may be the choice
    of several.
    """

    where: Where
    image: Image
    log: CallLog
    note: Callable[[bool], None]

    @property
    def offset(self) -> int:
        """How far behind its image's base it is."""
        return self.where.image_offset or 0
