"""Places that a program's authors made for probes (USDT), and what these give.

Runs in the controller. What an argument is the assembler has written, as text: it is made an expression of captures'.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from typing import Final

from clew.binary.usdt_notes import UsdtNote, read_usdt_notes
from clew.probing.locations.image_file import ImageFile
from clew.probing.locations.place import ImagePlace, PlaceKind, Resolution, UsdtArgument, UsdtProbe
from clew.probing.locations.syntax import UsdtPlace

__all__ = ["find_static_probes", "parse_arguments"]

MAX_ARGUMENTS: Final = 64
_ARGUMENT: Final = re.compile(r"(?:(?P<size>-?[0-9]+)(?P<float>f?)@)?(?P<operand>\S+)")
_IMAGE_NAME: Final = re.compile(r"[A-Za-z_.][\w.+-]*")
_SYMBOL: Final = re.compile(r"[A-Za-z_][\w$.]*")


def find_static_probes(image: ImageFile, where: UsdtPlace) -> Resolution:
    """The places in a file of some static probes. Raises BinaryError."""
    notes = read_usdt_notes(image.elf)
    found = [one for one in notes if _is_named(one.provider, where.provider) and _is_named(one.name, where.name)]
    if not found:
        return Resolution((), (), _tell_missing(image, where, notes))
    warnings = []
    places: dict[tuple[int, str, str], ImagePlace] = {}
    for note in found:
        if not image.elf.is_code(note.address):
            warnings.append(f"{note.provider}:{note.name} is at {note.address:#x}, where no code is")
            continue
        place = image.place(PlaceKind.USDT, note.address)
        probe = UsdtProbe(note.provider, note.name, note.semaphore or None, parse_arguments(image, note.arguments))
        places[note.address, note.provider, note.name] = place._replace(usdt=probe)
    missing = "" if places else f"{where.text}: none of these probes is in code of {image.path}"
    return Resolution(tuple(places[key] for key in sorted(places)), tuple(warnings), missing)


def parse_arguments(image: ImageFile, text: str) -> tuple[UsdtArgument, ...]:
    """The arguments of a static probe of a file, by its note (`-4@OPERAND 8@OPERAND`)."""
    return tuple(_parse_argument(image, one) for one in text.split()[:MAX_ARGUMENTS])


def _parse_argument(image: ImageFile, text: str) -> UsdtArgument:
    found = _ARGUMENT.fullmatch(text)
    if found is None:
        return UsdtArgument(text, "", None, "this is no argument")
    operand = found["operand"]
    # Where nothing is said of it, it is a word.
    size = int(found["size"] or 8) if len(found["size"] or "") < 4 else 0
    kind = f"{'f' if found['float'] else 'i' if size < 0 else 'u'}{8 * abs(size)}"
    if abs(size) not in ((4, 8) if found["float"] else (1, 2, 4, 8)):
        return UsdtArgument(operand, kind, None, f"captures have no numbers of {abs(size)} bytes like that")

    def find_symbol(name: str) -> str:
        if not _SYMBOL.fullmatch(name):
            raise ValueError(f"{name} is a name that captures can't have")
        image_name = os.path.basename(image.path)
        if _IMAGE_NAME.fullmatch(image_name):
            return f"{image_name}!{name}"
        # Without the image's name captures have none of the assembler's own characters.
        if not name.isidentifier():
            raise ValueError(f"{name} is a name that captures can't have")
        return name

    try:
        expression = image.architecture.express_operand(operand, kind, find_symbol)
    except ValueError as error:
        return UsdtArgument(operand, kind, None, str(error))
    return UsdtArgument(operand, kind, expression, "")


def _is_named(name: str, wanted: str) -> bool:
    return name == wanted or fnmatchcase(name, wanted)


def _tell_missing(image: ImageFile, where: UsdtPlace, notes: list[UsdtNote]) -> str:
    if not notes:
        return f"{image.path} has no static probes"
    of_provider = sorted({one.name for one in notes if _is_named(one.provider, where.provider)})
    if of_provider:
        return f"{image.path}: {where.provider} has no probe {where.name}; there is {', '.join(of_provider[:8])}"
    providers = sorted({one.provider for one in notes})
    return f"{image.path} has no static probes of {where.provider}; there are some of {', '.join(providers[:8])}"
