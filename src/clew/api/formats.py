"""What the format of a printf asks for: an argument for each of its directives.

Runs in the controller. Pure. A format is what a program has in its memory: it may be anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from clew.dataclass import dataclass

__all__ = ["Directive", "read_format"]

_DIRECTIVE: Final = re.compile(
    rb"%(?P<flags>[-+ #0'I]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?(?P<size>hh|ll|[hlqjztL])?(?P<kind>[a-zA-Z%])"
)
_WIDE: Final = frozenset({b"l", b"ll", b"q", b"j", b"z", b"t"})
_SMALL: Final = {b"hh": "char", b"h": "short"}


@dataclass(frozen=True)
class Directive:
    """An argument, by C type and raw type. `precision`: so much of a string is printed; -1: as the argument in front
    says."""

    c_type: str
    raw_type: str
    precision: int | None = None


def read_format(text: bytes) -> Iterator[Directive]:
    """The arguments in their order, up to one of which nobody can say where it is."""
    at = 0
    while (at := text.find(b"%", at)) >= 0:
        found = _DIRECTIVE.match(text, at)
        if found is None:
            # Numbered arguments, and what is none.
            return
        at = found.end()
        kind, size = found["kind"], found["size"] or b""
        if kind in b"%m":
            continue
        if found["width"] == b"*":
            yield Directive("int", "int")
        if found["precision"] == b"*":
            yield Directive("int", "int")
        one = _argument(kind, size, found["precision"])
        if one is None:
            return
        yield one


def _argument(kind: bytes, size: bytes, precision: bytes | None) -> Directive | None:
    if kind in b"diouxXbB":
        sign = "" if kind in b"di" else "unsigned "
        if kind in b"xX":
            raw_type = "hex"
        elif sign:
            raw_type = "ulong" if size in _WIDE else "uint"
        else:
            raw_type = "long" if size in _WIDE else "int"
        return Directive(sign + ("long" if size in _WIDE else _SMALL.get(size, "int")), raw_type)
    if kind in b"fFeEgGaA":
        return Directive("long double" if size == b"L" else "double", "float")
    if kind in b"cC":
        return Directive("int", "int")
    if kind in b"sS":
        most = None if precision is None else -1 if precision == b"*" else int(precision or b"0")
        if kind == b"S" or size == b"l":
            return Directive("const wchar_t *", "wide_string", most)
        return Directive("const char *", "string", most)
    return Directive("void *", "pointer") if kind in b"pn" else None
