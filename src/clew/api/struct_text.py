"""How what addresses lead to is written: strings, buffers, structures and arrays of them.

Runs in the controller. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from clew.api.decoding import Address, Bytes, Item, Number, Record, Sequence, decode, number_of
from clew.api.description import Member, Parameter
from clew.api.descriptions import Descriptions
from clew.api.pieces import Pointed
from clew.api.scalars import number_text
from clew.api.values import (
    REDACTED,
    bits_text,
    octets_text,
    pointer_text,
    quoted,
    signals_text,
    signed,
    size_text,
    sockaddr_text,
    timespec_text,
)
from clew.api.wide_strings import wide_text

__all__ = ["Style", "behind_text", "bytes_text", "item_text", "named_text", "pointed_text"]

_FAMILIES: Final = "socket_families"
_SIGNALS: Final = "signals"
"""Names of tables that raw types have of themselves."""


class Style(NamedTuple):
    """How much is told: so many bytes of strings and elements of arrays (None: all), and whether all members.

    `side` is what is told of members that are told on one side only; `before` is a structure as the call found it.
    `name_of` says what a descriptor stands for, where that is told.
    """

    limit: int | None
    has_details: bool = False
    side: str | None = None
    before: bytes | None = None
    name_of: Callable[[int], str | None] | None = None

    def inside(self) -> Style:
        """The same for what is in a structure."""
        return self._replace(before=None)


def named_text(name: str | None) -> str:
    """What a descriptor stands for, as strace -y has it: what is not printed is escaped, and the sign that ends it."""
    if name is None:
        return ""
    return f"<{quoted(name.encode(errors='surrogateescape'))[1:-1].replace('>', chr(92) + '76')}>"


def bytes_text(
    one: Member | Parameter, data: bytes, descriptions: Descriptions, style: Style, *, is_cut: bool
) -> str | None:
    """Bytes by what they are; None: nothing is known of how to write that."""
    raw_type, redaction = one.raw_type, descriptions.redaction
    if raw_type in ("path", "string"):
        text, end, _ = data.partition(b"\0")
        shown = text if redaction is None else redaction.data(text)
        return quoted(shown, None if raw_type == "path" else style.limit, is_cut=is_cut and not end)
    if raw_type == "wide_string":
        return wide_text(data, style.limit, None if redaction is None else redaction.data, is_cut=is_cut)
    if raw_type == "buffer":
        return quoted(data if redaction is None else redaction.data(data), style.limit, is_cut=is_cut)
    if raw_type == "timespec":
        return timespec_text(data)
    if raw_type == "sockaddr":
        shown = data if redaction is None else redaction.socket_address(data)
        told = sockaddr_text(shown, descriptions.flag_table(_FAMILIES))
        return told if told is None else descriptions.redacted(told)
    if raw_type == "sigset":
        return signals_text(data, descriptions.flag_table(_SIGNALS)) if data else None
    if raw_type == "octets":
        return octets_text(data if redaction is None else redaction.data(data))
    return bits_text(data) if raw_type == "bits" else None


def pointed_text(parameter: Parameter, value: Pointed, descriptions: Descriptions, style: Style) -> str | None:
    """What an argument leads to; None: nothing is known of it, or of how to write it."""
    data = value.data
    if data is None:
        return None
    struct = descriptions.struct(parameter.struct)
    if struct is None:
        return bytes_text(parameter, data, descriptions, style, is_cut=value.is_cut)
    item = decode(
        parameter,
        data,
        descriptions,
        value.inner,
        is_cut=value.is_cut,
        total=value.total,
        has_details=style.has_details,
    )
    if item is None or (isinstance(item, Record) and not item.members):
        return None
    if not struct.is_plain or isinstance(item, Sequence):
        return item_text(item, descriptions, style)
    told = item_text(item, descriptions, style)
    if style.before is None or parameter.direction != "inout" or style.before == data:
        return f"[{told}]"
    before = decode(parameter, style.before, descriptions, {})
    return f"[{told}]" if before is None else f"[{item_text(before, descriptions, style)} => {told}]"


def behind_text(parameter: Parameter, value: Pointed, descriptions: Descriptions, style: Style) -> str | None:
    """What an argument leads to when the call has returned, as it is told behind the result; None: nothing is."""
    if parameter.behind is None or value.data is None:
        return None
    item = decode(parameter, value.data, descriptions, value.inner, is_cut=value.is_cut)
    if isinstance(item, Sequence):
        # Those to which nothing happened are left out.
        kept = tuple(one for one in item.items if not isinstance(one, Record) or _has_answer(one))
        told = item_text(Sequence(kept, item.is_cut), descriptions, style)
    else:
        if parameter.raw_type == "bits" and not any(value.data):
            return None
        told = pointed_text(parameter, value, descriptions, style) or ""
    return f"{parameter.behind} {told}".strip()


def _has_answer(record: Record) -> bool:
    return any(isinstance(item, Number) and item.value for member, item in record.members if member.side == "out")


def item_text(item: Item, descriptions: Descriptions, style: Style) -> str:
    """A value out of a structure."""
    match item:
        case Number() | Bytes() if item.one.hidden is not None:
            return size_text(len(item.data)) if isinstance(item, Bytes) and item.one.hidden == "data" else REDACTED
        case Number():
            number = number_text(item.one, item.value, item.bits, descriptions)
            if style.name_of is None or item.one.raw_type != "fd":
                return number
            return number + named_text(style.name_of(signed(item.value, item.bits)))
        case Address():
            return pointer_text(item.value)
        case Bytes():
            told = bytes_text(item.one, item.data, descriptions, style, is_cut=item.is_cut)
            return quoted(item.data, style.limit) if told is None else told
        case Record():
            return _record_text(item, descriptions, style)
    inner = style.inside()
    shown = item.items if style.limit is None else item.items[: style.limit]
    pieces = [item_text(one, descriptions, inner) for one in shown]
    if item.is_cut or len(shown) < len(item.items):
        pieces.append("...")
    return f"[{', '.join(pieces)}]"


def _record_text(record: Record, descriptions: Descriptions, style: Style) -> str:
    inner = style.inside()
    pieces = []
    for member, item in record.members:
        if member.side in ("in", "out") and style.side not in (None, member.side):
            continue
        is_secret = member.hidden == "secret"
        told = REDACTED if is_secret else item_text(item, descriptions, inner)
        before = number_of(record.struct, member.name, style.before) if style.before is not None else None
        if member.side == "change" and not is_secret and isinstance(item, Number) and before not in (None, item.value):
            told = f"{number_text(member, before or 0, item.bits, descriptions)} => {told}"
        pieces.append(f"{member.name}={told}")
    if record.is_cut or (record.struct.has_more and not style.has_details):
        pieces.append("...")
    return f"{{{', '.join(pieces)}}}"
