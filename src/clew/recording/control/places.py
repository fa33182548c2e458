"""What people name when they control a recording: addresses, and symbols of what a process has loaded.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from clew.address import Pid, RemoteAddress
from clew.errors import BinaryError, ClewError, ControlError
from clew.process.linux import PROT_EXEC
from clew.process.maps import read_maps
from clew.recording.options.filters import CodeMapping, Filter, image_base

__all__ = ["describe_addresses", "find_address", "parse_place"]

_PLACE: Final = re.compile(r"(?P<name>.+?)(?:\+(?P<offset>0x[0-9a-fA-F]+|[0-9]+))?")
_NUMBER: Final = re.compile(r"0x[0-9a-fA-F]+|[0-9]+")
_MAX_ADDRESS: Final = 1 << 47
_MAX_DIGITS: Final = 20


def find_address(pid: Pid, executable: str, text: str) -> RemoteAddress:
    """Where `text` is in process `pid`: an address (0x401000), a symbol (main, libc.so.6!malloc), or one with an offset
    (main+0x10). A symbol without an image is looked for in the executable first, then everywhere.

    Raises ControlError if there is no such place, or several.
    """
    place = parse_place(text)
    if isinstance(place, int):
        return RemoteAddress(place)
    name, offset = place
    image, separator, symbol = name.rpartition("!")
    mappings = _code_of(pid)
    if separator:
        wanted = Filter(name, image=image)
        found = _find_symbol([one for one in mappings if wanted.matches_image(one.path)], symbol)
    else:
        found = _find_symbol([one for one in mappings if one.path == executable], symbol)
        found = found or _find_symbol(mappings, symbol)
    if not found:
        raise ControlError(f"{text}: nothing that process {pid} has loaded has such a symbol")
    if len(found) > 1:
        places = ", ".join(f"{address:#x} ({path})" for address, path in sorted(found.items())[:4])
        raise ControlError(f"{text}: there are {len(found)} of it: {places}; give an address or IMAGE!SYMBOL")
    return RemoteAddress(next(iter(found)) + offset)


def parse_place(text: str) -> int | tuple[str, int]:
    """An address, or a symbol, maybe with its image, and how far behind it. Raises ControlError where it is neither."""
    match = _PLACE.fullmatch(text.strip())
    if match is None or "\0" in text:
        raise ControlError(f"{text!r}: not a place; give an address (0x401000) or a symbol (main, libc.so.6!malloc)")
    name, offset = match["name"], _parse_number(match["offset"] or "0")
    if not _NUMBER.fullmatch(name):
        return name, offset
    address = _parse_number(name) + offset
    if not 0 < address < _MAX_ADDRESS:
        raise ControlError(f"{text}: no program has code there")
    return address


def describe_addresses(pid: Pid, addresses: Iterable[int]) -> dict[int, str]:
    """By address of process `pid` the symbol that it lies in, or the image; empty where nothing is known."""
    described = dict.fromkeys(addresses, "")
    if not described:
        return described
    with contextlib.suppress(ControlError):
        for mapping in _code_of(pid):
            inside = [address for address in described if mapping.start <= address < mapping.end]
            if inside:
                described |= _describe_inside(mapping, inside)
    return described


def _describe_inside(mapping: CodeMapping, addresses: list[int]) -> dict[int, str]:
    import numpy as np

    from clew.binary.symbols import load_symbols

    image = Path(mapping.path).name
    try:
        base = image_base(mapping)
        symbols = load_symbols(Path(mapping.path))
        offsets = [address - base for address in addresses]
        found = symbols.find(np.array(offsets, np.uint64)).tolist()
    except (ClewError, OSError, ValueError, OverflowError):
        return dict.fromkeys(addresses, image)
    described = {}
    for address, offset, index in zip(addresses, offsets, found, strict=True):
        distance = offset if index < 0 else offset - int(symbols.offsets[index])
        name = image if index < 0 else f"{image}!{symbols.name(index)}"
        described[address] = f"{name}+{distance:#x}" if distance or index < 0 else name
    return described


def _parse_number(text: str) -> int:
    """Hexadecimal with 0x, else decimal; too large for any address where it has too many digits to be one."""
    digits = text.removeprefix("0x").lstrip("0")
    if len(digits) > _MAX_DIGITS:
        return _MAX_ADDRESS
    return int(digits or "0", 16 if text.startswith("0x") else 10)


def _code_of(pid: Pid) -> list[CodeMapping]:
    try:
        mappings = read_maps(pid)
    except OSError as error:
        raise ControlError(f"process {pid}: {error.strerror or error}") from error
    return [CodeMapping.of(one) for one in mappings if one.protection & PROT_EXEC and one.path]


def _find_symbol(mappings: list[CodeMapping], symbol: str) -> dict[int, str]:
    """Path by address of each place of that name."""
    from clew.binary.symbols import load_symbols

    found: dict[int, str] = {}
    for mapping in mappings:
        try:
            base = image_base(mapping)
            places = load_symbols(Path(mapping.path)).find_by_name(symbol)
        except (BinaryError, ClewError, OSError):
            continue
        for offset, _ in places:
            if mapping.start <= base + int(offset) < mapping.end:
                found[base + int(offset)] = mapping.path
    return found
