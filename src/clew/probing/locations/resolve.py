"""Which places in a file are meant by what somebody wrote.

Runs in the controller. Knows no process: `clew.probing.locations.in_process` does.
"""

from __future__ import annotations

from typing import Final

from clew.probing.locations.functions import find_function_places
from clew.probing.locations.image_file import ImageFile, is_image_named
from clew.probing.locations.place import PlaceKind, Resolution
from clew.probing.locations.source_lines import find_line_places
from clew.probing.locations.static_probes import find_static_probes
from clew.probing.locations.syntax import AddressPlace, LinePlace, Location, NamePlace, UsdtPlace

__all__ = ["resolve_in_image"]

_ET_EXEC: Final = 2


def resolve_in_image(image: ImageFile, where: Location, *, with_inlined: bool = False) -> Resolution:
    """The places in a file that are meant. `with_inlined`: also where a function was inlined. Raises BinaryError."""
    if not is_image_named(where.image, image.path) and not is_image_named(where.image, image.path, image.soname):
        return Resolution((), (), f"{where.text}: {image.path} is another image")
    match where:
        case NamePlace():
            return find_function_places(image, where, with_inlined=with_inlined)
        case LinePlace():
            return find_line_places(image, where)
        case UsdtPlace():
            return find_static_probes(image, where)
        case AddressPlace():
            return _find_address(image, where)


def _find_address(image: ImageFile, where: AddressPlace) -> Resolution:
    if not where.image and image.elf.kind != _ET_EXEC:
        why = "this file may be loaded anywhere: give IMAGE!ADDRESS, by the addresses that are in the file"
        return Resolution((), (), f"{where.text}: {why}")
    if not image.elf.is_code(where.address):
        return Resolution((), (), f"{where.text}: {image.path} has no code there")
    place = image.place(PlaceKind.OFFSET, where.address)
    if place.symbol and not place.distance:
        place = place._replace(kind=PlaceKind.ENTRY)
    start = image.find_instruction(where.address, where.address - place.distance) if place.symbol else None
    if start is not None and start != where.address:
        place = place._replace(warnings=(f"this is inside of the instruction at {start:#x}",))
    return Resolution((place,))
