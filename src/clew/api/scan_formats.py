"""What the format of a scanf asks for: where each of its directives writes to, and what.

Runs in the controller. Pure. A format is what a program has in its memory: it may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from clew.dataclass import dataclass

__all__ = ["Target", "read_scan_format"]

_DIRECTIVE: Final = re.compile(
    rb"%(?P<skipped>\*?)(?P<flags>['Im]*)(?P<width>\d*)(?P<size>hh|ll|[hlqjztL])?"
    rb"(?P<kind>\[\^?\]?[^\]]*\]|[a-zA-Z%])",
    re.DOTALL,
)
_LONG: Final = frozenset({b"l", b"ll", b"q", b"j", b"z", b"t", b"L"})
_SIGNED: Final = {b"hh": ("signed char", "schar"), b"h": ("short", "short")}
_UNSIGNED: Final = {b"hh": ("unsigned char", "uchar"), b"h": ("unsigned short", "ushort")}
_FLOATS: Final = {b"": ("float", "float"), b"l": ("double", "double"), b"L": ("long double", "long_double")}
_MAX_WIDTH: Final = 1 << 16


@dataclass(frozen=True)
class Target:
    """Where a directive writes to, by C type and raw type; `struct` is what describes one number there.

    `width`: how many characters there are, of those that do not end by themselves. `is_counted`: what is written counts
    in the result. `is_behind`: nothing of the format is between the directive in front and this one.
    """

    c_type: str
    raw_type: str
    struct: str | None = None
    width: int | None = None
    is_counted: bool = True
    is_behind: bool = False


def read_scan_format(text: bytes) -> Iterator[Target]:
    """The targets in their order, up to one of which nobody can say where it is."""
    at, end = 0, -1
    while (at := text.find(b"%", at)) >= 0:
        found = _DIRECTIVE.match(text, at)
        if found is None:
            # Numbered targets, and what is none.
            return
        is_behind = at == end
        at = end = found.end()
        if found["kind"] == b"%" or found["skipped"]:
            # What is skipped may not be there, and what is behind it is not written then.
            end = -1
            continue
        one = _target(found, is_behind=is_behind)
        if one is None:
            return
        yield one


def _target(found: re.Match[bytes], *, is_behind: bool) -> Target | None:
    size, kind = found["size"] or b"", found["kind"]
    if kind == b"n":
        c_type, struct = ("long", "long") if size in _LONG else _SIGNED.get(size, ("int", "int"))
        return Target(f"{c_type} *", "struct", struct, is_counted=False, is_behind=is_behind)
    if kind[:1] in b"sScC[":
        return _text(found, is_wide=kind in b"SC" or size == b"l")
    c_type, struct = "", ""
    if kind in b"di":
        c_type, struct = ("long", "long") if size in _LONG else _SIGNED.get(size, ("int", "int"))
    elif kind in b"ou":
        c_type, struct = ("unsigned long", "ulong") if size in _LONG else _UNSIGNED.get(size, ("unsigned int", "uint"))
    elif kind in b"xX":
        c_type, struct = ("unsigned long", "hex64") if size in _LONG else _UNSIGNED.get(size, ("unsigned int", "hex32"))
    elif kind == b"p":
        c_type, struct = "void *", "address"
    elif kind in b"aAeEfFgG" and size in _FLOATS:
        c_type, struct = _FLOATS[size]
    if not struct:
        return None
    return Target(f"{c_type}*" if c_type.endswith("*") else f"{c_type} *", "struct", struct)


def _text(found: re.Match[bytes], *, is_wide: bool) -> Target:
    c_type = "wchar_t" if is_wide else "char"
    if b"m" in found["flags"]:
        # It is allocated, and its address is written.
        return Target(f"{c_type} **", "struct", "address")
    if found["kind"] in b"cC":
        width = min(int(found["width"][:9] or b"1"), _MAX_WIDTH)
        return Target(f"{c_type} *", "wide_string" if is_wide else "buffer", None, width)
    return Target(f"{c_type} *", "wide_string" if is_wide else "string")
