"""What is in the structures that an argument leads to: each single value, with the way to it.

Runs in the controller. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.api.decoding import Address, Bytes, Item, Number, Record, decode
from clew.api.description import Member, Parameter
from clew.api.descriptions import Descriptions
from clew.api.pieces import Path, Pointed, Value, path_text
from clew.api.values import signed
from clew.dataclass import dataclass

__all__ = ["Found", "members_of"]

_SIGNED = frozenset({"int", "long", "fd", "pid", "tid", "offset", "clock", "signal"})
"""Raw types whose numbers have a sign."""


@dataclass(frozen=True)
class Found:
    """A single value within what an argument leads to: its `path`, as `msg_control[0].cmsg_data[1]`, the description of
    it, which has its raw type and table, and the value: a number, with its sign if it has one, or bytes."""

    path: str
    one: Member | Parameter
    value: int | bytes


def members_of(parameter: Parameter, value: Value, descriptions: Descriptions) -> Iterator[Found]:
    """All single values in the structures that an argument leads to, as the call left them; of what it only reads, or
    where it failed, as it found them. Nothing for what leads to no structure."""
    if isinstance(value, bytes):
        value = Pointed(0, value)
    if not isinstance(value, Pointed):
        return
    is_read = value.data is None or (parameter.direction == "in" and value.before is not None)
    data, inner = (value.before, value.inner_before) if is_read else (value.data, value.inner)
    if data is None:
        return
    item = decode(parameter, data, descriptions, inner, total=value.total)
    if item is not None:
        yield from _leaves(item, ())


def _leaves(item: Item, path: Path) -> Iterator[Found]:
    match item:
        case Number():
            number = signed(item.value, item.bits) if item.one.raw_type in _SIGNED else item.value
            yield Found(path_text(path), item.one, number)
        case Bytes():
            yield Found(path_text(path), item.one, item.data)
        case Record():
            for member, inner in item.members:
                yield from _leaves(inner, (*path, member.name))
        case Address():
            # What it leads to was not read.
            return
        case _:
            for index, inner in enumerate(item.items):
                yield from _leaves(inner, (*path, index))
