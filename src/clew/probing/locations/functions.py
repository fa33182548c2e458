"""Places that are named by functions: where these begin, or some bytes behind that, or where they were inlined.

Runs in the controller.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from clew.binary.code_symbols import CodeSymbol
from clew.binary.demangle import demangle
from clew.binary.inlined import SEARCH_STEPS, find_inlined
from clew.binary.plt import SUFFIX
from clew.errors import BinaryError
from clew.probing.locations.image_file import ImageFile
from clew.probing.locations.place import ImagePlace, PlaceKind, Resolution
from clew.probing.locations.readable import find_named, last_part, readable_forms
from clew.probing.locations.syntax import NamePlace

__all__ = ["find_function_places", "find_functions_called"]

MAX_TOLD: Final = 4
MIN_HINT, MAX_HINTS = 2, 2000
"""Names that are compared with one that was not found, and how long that has to be for it."""
COUNT_STEPS: Final = 1 << 16
"""Of debugging information read to count instances that nobody asked for: some tenths of a second."""
_COLD: Final = re.compile(r"\.cold(\.\d+)?$")
_COPY: Final = re.compile(r"(?:\.(?:constprop|isra|lto_priv|llvm)\.[0-9A-Fa-f]+)+$")
_VERSION: Final = re.compile(r"(?P<name>[^@]+)(?P<version>@@?[^@]+)")
_BINDINGS: Final = ("global", "weak", "local")


def find_function_places(image: ImageFile, where: NamePlace, *, with_inlined: bool) -> Resolution:
    """The places in a file that a name, or a pattern, means. Raises BinaryError."""
    if where.name.endswith(SUFFIX) and not where.is_quoted:
        name = where.name.removesuffix(SUFFIX)
        why = f"{where.text}: stubs that lead to other files' functions are not probed; give {name} itself"
        return Resolution((), (), why)
    name, is_pattern, numbers = _find_symbols(image, where)
    groups = _group(image, numbers, name, is_pattern)
    warnings: list[str] = []
    copies = _find_copies(image, name) if not is_pattern else {}
    if copies.keys() - groups.keys():
        told = _tell([one[0].name for one in copies.values()])
        warnings.append(f"the compiler made copies of {name}, which may take other arguments: {told}")
        groups |= {address: found for address, found in copies.items() if address not in groups}
    places, notes = _make_places(image, where, groups)
    warnings += notes
    warnings += _tell_of_several(where, name, is_pattern, groups)
    inlined, notes = _find_inlined(image, where, name, is_pattern, with_inlined=with_inlined)
    known = {place.address for place in places}
    if with_inlined:
        places += [place for place in inlined if place.address not in known]
    warnings += notes
    places.sort(key=lambda place: place.address)
    if places:
        return Resolution(tuple(places), tuple(warnings))
    if inlined:
        why = f"{name} has no code of its own in {image.path}: it was inlined at {_count(inlined)} (--inline)"
        return Resolution((), (), why)
    return Resolution((), tuple(warnings), _tell_missing(image, where, name, is_pattern))


def find_functions_called(image: ImageFile, name: str) -> list[int]:
    """Where functions begin in a file whose symbols are called just so: nothing else is looked at, nor told."""
    return list(_group(image, list(find_named(image.symbols.names, name, is_pattern=False)), name, False))


def _find_symbols(image: ImageFile, where: NamePlace) -> tuple[str, bool, list[int]]:
    """The name or pattern that was meant, which of both it is, and the numbers of the symbols."""
    names = image.symbols.names
    numbers = list(find_named(names, where.name, is_pattern=False))
    if numbers:
        return where.name, False, numbers
    versioned = _VERSION.fullmatch(where.name)
    if versioned is not None:
        found = find_named(names, versioned["name"], is_pattern=False)
        # The tables of names of some files repeat what is among the dynamic ones, without versions.
        return where.name, False, [one for one in found if _has_version(image.symbols.pick(one), versioned["version"])]
    if where.may_be_pattern:
        return where.name, True, list(find_named(names, where.name, is_pattern=True))
    return where.name, False, []


def _has_version(symbol: CodeSymbol, version: str) -> bool:
    """Whether a symbol has a version: `@@V` is what programs are linked against now, `@V` any of that name."""
    return symbol.version == version or (not version.startswith("@@") and symbol.version == f"@{version}")


def _group(image: ImageFile, numbers: list[int], name: str, is_pattern: bool) -> dict[int, list[CodeSymbol]]:
    """The symbols by their addresses, of each address the one first that says most."""
    groups: dict[int, list[CodeSymbol]] = {}
    for number in numbers:
        symbol = image.symbols.pick(number)
        # Labels inside of functions are no functions; who names one means it.
        is_inner = symbol.is_label and symbol.binding == "local" and not symbol.size_bytes
        is_left_out = (is_pattern and is_inner) or (_COLD.search(symbol.name) and _is_other(name, symbol))
        if image.elf.is_code(symbol.address) and not is_left_out:
            groups.setdefault(symbol.address, []).append(symbol)
    for found in groups.values():
        if len(found) > 1:
            found.sort(key=lambda one: _rank(one, name))
    return dict(sorted(groups.items()))


def _is_other(name: str, symbol: CodeSymbol) -> bool:
    """Whether a part of a function that was put elsewhere is not what was asked for: it is jumped to, not called."""
    return "cold" not in name and name != symbol.name


def _rank(symbol: CodeSymbol, name: str) -> tuple[object, ...]:
    underscores = len(symbol.name) - len(symbol.name.lstrip("_"))
    return (
        symbol.name != name,
        symbol.is_label,
        symbol.size_bytes == 0,
        _BINDINGS.index(symbol.binding),
        min(underscores, 2) if not symbol.name.startswith(("_Z", "_R")) else 0,
        len(symbol.name),
        symbol.name,
    )


def _find_copies(image: ImageFile, name: str) -> dict[int, list[CodeSymbol]]:
    """Copies of a function that the compiler made for some of its callers, by their addresses."""
    found: dict[int, list[CodeSymbol]] = {}
    for number, other in enumerate(image.symbols.names):
        if other.startswith(name) and _COPY.sub("", other) == name != other:
            symbol = image.symbols.pick(number)
            if image.elf.is_code(symbol.address):
                found.setdefault(symbol.address, []).append(symbol)
    return found


def _make_places(
    image: ImageFile, where: NamePlace, groups: dict[int, list[CodeSymbol]]
) -> tuple[list[ImagePlace], list[str]]:
    aliases = _names_at(image, groups)
    places: list[ImagePlace] = []
    notes: list[str] = []
    for address, found in groups.items():
        symbol = found[0]
        is_chooser = any(one.is_indirect for one in found)
        warnings: list[str] = []
        if where.distance:
            refused = _check_distance(image, symbol, where.distance, warnings)
            if refused:
                notes.append(refused)
                continue
        kind = PlaceKind.CHOOSER if is_chooser else PlaceKind.OFFSET if where.distance else PlaceKind.ENTRY
        if is_chooser:
            why = "this code chooses the function when the program starts: only a process tells which one it is"
            warnings.append(f"{symbol.name}: {why}")
        place = image.place(kind, address + where.distance, symbol.name, where.distance)
        others = tuple([one for one in aliases[address] if one != symbol.name])
        if others or symbol.file or warnings:
            place = place._replace(aliases=others, source=symbol.file, warnings=tuple(warnings))
        places.append(place)
    return places, notes


def _names_at(image: ImageFile, groups: dict[int, list[CodeSymbol]]) -> dict[int, list[str]]:
    """All names of some addresses."""
    names: dict[int, set[str]] = {address: set() for address in groups}
    symbols = image.symbols
    for number, address in enumerate(symbols.addresses):
        if address in names:
            names[address].add(symbols.names[number])
    return {address: sorted(found) if len(found) > 1 else list(found) for address, found in names.items()}


def _check_distance(image: ImageFile, symbol: CodeSymbol, distance: int, warnings: list[str]) -> str:
    """Why there is no place so far behind a function's start; empty where there is one."""
    address = symbol.address + distance
    if not image.elf.is_code(address):
        return f"{symbol.name}+{distance:#x}: no code is there"
    if symbol.size_bytes and distance >= symbol.size_bytes:
        warnings.append(f"{symbol.name} has {symbol.size_bytes} bytes: this is behind its end")
    start = image.find_instruction(address, symbol.address)
    if start is not None and start != address:
        behind = start - symbol.address
        warnings.append(f"this is inside of the instruction at {symbol.name}+{behind:#x}")
    return ""


def _tell_of_several(
    where: NamePlace, name: str, is_pattern: bool, groups: dict[int, list[CodeSymbol]]
) -> Iterator[str]:
    exact = [found[0] for found in groups.values() if found[0].name == name]
    if not is_pattern and len(exact) > 1:
        files = [one.file or one.version.lstrip("@") or f"{one.address:#x}" for one in exact]
        yield f"{len(exact)} functions are called {name}: {_tell(files)}"
    others = {one.name for found in groups.values() for one in found[:1]} - {name}
    if not is_pattern and not exact and len(others) > 1:
        yield f"{len(others)} functions are meant by {name}: {_tell([demangle(one) for one in sorted(others)])}"


def _find_inlined(
    image: ImageFile, where: NamePlace, name: str, is_pattern: bool, *, with_inlined: bool
) -> tuple[list[ImagePlace], list[str]]:
    """Where the functions were inlined; and a note of how often, where nobody asked."""
    if where.distance or (is_pattern and not with_inlined):
        return [], []

    def is_wanted(linked: str) -> bool:
        return next(find_named([linked], name, is_pattern=is_pattern), None) is not None

    steps = SEARCH_STEPS if with_inlined else COUNT_STEPS
    try:
        found = find_inlined(image.debug, None if is_pattern else last_part(name), is_wanted, steps)
    except BinaryError as error:
        return [], [f"where {name} was inlined is not known: {error.reason}"] if with_inlined else []
    places = []
    for one in found:
        if image.elf.is_code(one.address):
            place = image.place(PlaceKind.INLINED, one.address)
            places.append(place._replace(source=f"{demangle(one.name)} inlined in {demangle(one.inside)}"))
    if with_inlined or not places:
        return places, []
    return places, [f"{name} was also inlined, at {_count(places)}, left out here (--inline)"]


def _tell_missing(image: ImageFile, where: NamePlace, name: str, is_pattern: bool) -> str:
    if is_pattern:
        return f"{image.path} has no function whose name is like {name}"
    if not len(image.symbols):
        return f"{image.path} has no symbols: give an address of it (IMAGE!0x1234)"
    last = last_part(name).lower().strip("_")
    near: dict[str, None] = {}
    alike = (one for one in image.symbols.names if last in one.lower()) if len(last) > MIN_HINT else iter(())
    for other in islice(alike, MAX_HINTS):
        forms = (other, *readable_forms(other))
        if any(last_part(form).lower().strip("_") == last for form in forms) and name not in forms:
            near[demangle(other)] = None
    meant = f"; did you mean {_tell(list(near))}?" if near else ""
    return f"{image.path} has no function {name}{meant}"


def _count(places: list[ImagePlace]) -> str:
    return f"{len(places)} place{'s' if len(places) > 1 else ''}"


def _tell(names: list[str]) -> str:
    shown = ", ".join(names[:MAX_TOLD])
    return shown + (f", and {len(names) - MAX_TOLD} more" if len(names) > MAX_TOLD else "")
