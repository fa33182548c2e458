"""What people call a function: an address, a symbol, or one of an image's, each with a distance if they like.

Runs in the controller.
"""

from __future__ import annotations

import re
from typing import Final

from clew.errors import UsageError
from clew.sessions.places import Where

__all__ = ["parse_where"]

_WHERE: Final = re.compile(r"(?:(?P<image>[^!]+)!)?(?P<symbol>.+?)(?:\+(?P<offset>0x[0-9a-fA-F]+|[0-9]+))?")
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]+|[0-9]+")
_MAX_ADDRESS: Final = 1 << 47


def parse_where(where: str | int) -> Where:
    """`0x401136` or a number, `main`, `libc.so.6!malloc`, `main+0x10`. Raises UsageError."""
    text = f"{where:#x}" if isinstance(where, int) else where.strip()
    match = _WHERE.fullmatch(text)
    if match is None or "\0" in text:
        raise UsageError(f"{text!r}: not a place; give an address (0x401000) or a symbol (main, libc.so.6!malloc)")
    offset = _parse_number(match["offset"] or "0")
    address = None
    if match["image"] is None and _NUMBER.fullmatch(match["symbol"]):
        address = _parse_number(match["symbol"]) + offset
        if not 0 < address < _MAX_ADDRESS:
            raise UsageError(f"{text}: no program has code there")
    return Where(text, address, match["image"] or "", match["symbol"], offset)


def _parse_number(text: str) -> int:
    # More digits than any address has: Python would take long for very many.
    digits = text.removeprefix("0x").lstrip("0")
    return _MAX_ADDRESS if len(digits) > 20 else int(digits or "0", 16 if text.startswith("0x") else 10)
