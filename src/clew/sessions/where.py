"""What people call a function: an address, a symbol, or one of an image's, each with a distance if they like.

Runs in the controller.
"""

from __future__ import annotations

from clew.errors import ControlError, UsageError
from clew.recording.control.places import parse_place
from clew.sessions.places import Where

__all__ = ["parse_where"]


def parse_where(where: str | int) -> Where:
    """`0x401136` or a number, `main`, `libc.so.6!malloc`, `main+0x10`. Raises UsageError."""
    text = f"{where:#x}" if isinstance(where, int) else where.strip()
    try:
        place = parse_place(text)
    except ControlError as error:
        raise UsageError(error.message) from error
    if isinstance(place, int):
        return Where(text, place, "", "", 0)
    image, _, symbol = place[0].rpartition("!")
    return Where(text, None, image, symbol, place[1])
