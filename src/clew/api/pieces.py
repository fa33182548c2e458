"""Values of arguments, as they were taken: numbers, and pieces of memory that addresses lead to.

Runs in the controller. What a piece means is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

__all__ = ["REST", "Path", "Pointed", "Value", "path_text", "register_of"]

Path = tuple[str | int, ...]
"""Where something is within what an argument leads to: names of members, and numbers of elements."""


_NOTHING: Final[Mapping[Path, bytes]] = MappingProxyType({})

REST: Final[Path] = ("",)
"""The path of what is behind the end of a page, of what was taken up to there."""


class Pointed(NamedTuple):
    """An argument that leads somewhere: its `address`, and what is there. `data` is None where that could not be read,
    and `is_cut` says that there is more of it than `data` has.

    `before` is what was there when the call began, where `data` is what it left. `inner` is what addresses within
    `data` lead to, and `inner_before` what those within `before` do; `total` is how many bytes of all that count.
    """

    address: int
    data: bytes | None = None
    is_cut: bool = False
    before: bytes | None = None
    inner: Mapping[Path, bytes] = _NOTHING
    inner_before: Mapping[Path, bytes] = _NOTHING
    total: int | None = None


Value = int | bytes | Pointed | None


def register_of(value: Value) -> int | None:
    """The number that an argument is, or the address, if it is there."""
    if isinstance(value, Pointed):
        return value.address
    return value if isinstance(value, int) else None


def path_text(path: Path) -> str:
    """A path as C has it: `msg_iov[0].iov_base`."""
    return "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path).lstrip(".")
