"""What people write for places of probes (LOC), as text alone: nothing is known of any program.

Runs in the controller. The whole of it is in docs/probe-locations.md.

    LOC       [IMAGE!]PLACE
    PLACE     ADDRESS, NAME, NAME+DISTANCE, FILE:LINE, usdt:PROVIDER:PROBE
    NAME      a symbol, a name of C++, Rust or Go, a pattern (* ? [...]), or any text between quotes
    ADDRESS, DISTANCE    10, 0x1f, 017; an address may have a distance, too
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

from clew.errors import UsageError

__all__ = [
    "AddressPlace",
    "LinePlace",
    "Location",
    "NamePlace",
    "UsdtPlace",
    "has_pattern",
    "parse_location",
    "parse_number",
]

MAX_CHARACTERS: Final = 4096
MAX_STARS: Final = 32
_EXPECTED: Final = (
    "expected an address (0x401136), a symbol (main, main+0x10), IMAGE!SYMBOL (libc.so.6!malloc), "
    "FILE:LINE (main.c:42), usdt:PROVIDER:PROBE, or a pattern (str*)"
)
_NUMBER: Final = re.compile(r"[0-9][0-9A-Za-z_]*")
_DISTANCE: Final = re.compile(r"\+\s*(?P<number>[0-9][0-9A-Za-z]*)$")
_LINE: Final = re.compile(r"(?P<file>.*[^:]):(?P<line>[0-9]+)", re.DOTALL)
_QUOTED: Final = re.compile(r"(?P<quote>['\"])(?P<name>(?:(?!(?P=quote)).)*)(?P=quote)(?P<rest>.*)", re.DOTALL)
_PATTERN: Final = re.compile(r"[*?]|\[[^]]")
_USDT: Final = "usdt:"
_NOT_OPERATOR: Final = re.compile(r"(?<![\w$])operator\s*$")


class AddressPlace(NamedTuple):
    """An address: of the process; or, with `image`, one of those that the image's file was linked for."""

    text: str
    image: str
    address: int


class NamePlace(NamedTuple):
    """What is `distance` bytes behind the start of the functions of a name. `is_quoted`: it is meant to the letter."""

    text: str
    image: str
    name: str
    distance: int
    is_quoted: bool

    @property
    def may_be_pattern(self) -> bool:
        """Whether the name stands for others, too, where nothing is called just so."""
        return not self.is_quoted and has_pattern(self.name)


class LinePlace(NamedTuple):
    """The code of a line, 1 the first, of the source files whose paths end with `file`."""

    text: str
    image: str
    file: str
    line: int


class UsdtPlace(NamedTuple):
    """Static probes; both names may be patterns."""

    text: str
    image: str
    provider: str
    name: str


Location = AddressPlace | NamePlace | LinePlace | UsdtPlace
"""`text` is what was written, `image` a name, a path or a pattern of such; empty: any."""


def parse_location(text: str) -> Location:
    """What a place is that somebody wrote. Raises UsageError, which says what was expected."""
    whole = text.strip()
    if not whole:
        raise UsageError(f"an empty place; {_EXPECTED}")
    if len(whole) > MAX_CHARACTERS or not whole.isprintable():
        shown = whole[:32].encode("unicode_escape").decode()
        why = f"longer than {MAX_CHARACTERS} characters" if len(whole) > MAX_CHARACTERS else "not printable"
        raise UsageError(f"{shown}...: {why}; {_EXPECTED}")
    if whole.count("*") > MAX_STARS:
        raise UsageError(f"{whole}: a pattern has at most {MAX_STARS} stars")
    image, rest = _split_image(whole)
    if rest.startswith(_USDT):
        return _parse_usdt(whole, image, rest)
    quoted = _QUOTED.fullmatch(rest)
    if quoted is not None:
        return _parse_quoted(whole, image, quoted)
    found = _DISTANCE.search(rest)
    base = rest if found is None else rest[: found.start()].rstrip()
    distance = 0 if found is None else parse_number(found["number"], whole)
    if _NUMBER.fullmatch(base):
        return _at_address(whole, image, parse_number(base, whole) + distance)
    line = _LINE.fullmatch(rest)
    if line is not None:
        return _parse_line(whole, image, line)
    if not base:
        raise UsageError(f"{whole}: a distance from nothing; {_EXPECTED}")
    return NamePlace(whole, image, base, distance, False)


def has_pattern(name: str) -> bool:
    """Whether a name has anything of a pattern: `*`, `?`, or some characters in brackets."""
    return _PATTERN.search(name) is not None


def parse_number(digits: str, text: str) -> int:
    """A number as C has it, of at most 64 bits. Raises UsageError about `text`."""
    base, body = 10, digits
    if digits[:2] in ("0x", "0X"):
        base, body = 16, digits[2:]
    elif digits.startswith("0") and len(digits) > 1:
        base, body = 8, digits[1:]
    try:
        value = int(body, base) if body.isalnum() and len(body) <= 64 else -1
    except ValueError:
        value = -1
    if value < 0:
        kind = {8: "octal number (it begins with 0)", 10: "decimal number", 16: "hexadecimal number"}[base]
        raise UsageError(f"{text}: {digits} is no {kind}; a name that begins with a digit is written in quotes")
    if value >> 64:
        raise UsageError(f"{text}: {digits} is larger than 64 bits")
    return value


def _split_image(text: str) -> tuple[str, str]:
    """The image in front of a place, made an absolute path where it is a path; and the place."""
    if text[0] in "'\"":
        return "", text
    at = text.find("!")
    # `operator!` and `operator!=` are names of C++'s.
    while at >= 0 and _NOT_OPERATOR.search(text[:at]):
        at = text.find("!", at + 1)
    if at < 0:
        return "", text
    image, rest = text[:at].strip(), text[at + 1 :].strip()
    if not image or not rest:
        raise UsageError(f"{text}: IMAGE!PLACE was expected, such as libc.so.6!malloc")
    if "/" in image and not image.startswith(("/", "*")):
        image = os.path.abspath(image)
    return image, rest


def _at_address(text: str, image: str, address: int) -> AddressPlace:
    if address >> 64 or not address:
        raise UsageError(f"{text}: no program has code there")
    return AddressPlace(text, image, address)


def _parse_quoted(text: str, image: str, quoted: re.Match[str]) -> NamePlace:
    found = _DISTANCE.fullmatch(quoted["rest"].strip()) if quoted["rest"] else None
    if not quoted["name"] or (quoted["rest"] and found is None):
        raise UsageError(f"{text}: a name in quotes was expected, and at most a distance behind it ('a b'+0x10)")
    distance = 0 if found is None else parse_number(found["number"], text)
    return NamePlace(text, image, quoted["name"], distance, True)


def _parse_line(text: str, image: str, found: re.Match[str]) -> LinePlace:
    digits = found["line"]
    if digits.startswith("0") or len(digits) > 9:
        raise UsageError(f"{text}: {digits} is no line; lines are decimal numbers from 1 on, as compilers write them")
    return LinePlace(text, image, found["file"], int(digits))


def _parse_usdt(text: str, image: str, rest: str) -> UsdtPlace:
    parts = rest.removeprefix(_USDT).split(":")
    if len(parts) != 2 or not all(parts):
        raise UsageError(f"{text}: usdt:PROVIDER:PROBE was expected, such as usdt:python:gc__start or usdt:libc:*")
    return UsdtPlace(text, image, parts[0], parts[1])
