"""Whether events can be of the places that are asked for: a look at files and processes before any session is told.

Runs in whoever controls. Nothing is changed in any process.
"""

from __future__ import annotations

from pathlib import Path

from clew.address import Pid
from clew.binary.elf import ElfFile
from clew.errors import BinaryError, UsageError
from clew.probing.locations.image_file import ImageFile, open_image
from clew.probing.locations.in_process import open_process
from clew.probing.locations.place import ImagePlace, PlaceKind
from clew.probing.locations.resolve import resolve_in_image
from clew.probing.native import ImageCode, plan_site
from clew.sessions.probes.background.wishes import EventWish
from clew.sessions.probes.image_code import find_function, read_code

__all__ = ["check_places"]


def check_places(wish: EventWish) -> list[str]:
    """What is to be told of the places of an event. Raises UsageError where none of them can be probed, or the file has
    none; TargetError where the process can't be seen."""
    if wish.pid:
        return _check_in_process(wish)
    return _check_in_file(wish)


def _check_in_process(wish: EventWish) -> list[str]:
    with open_process(Pid(wish.pid)) as places:
        found = places.resolve(wish.make_spec().location, with_inlined=wish.with_inlined)
        if not found.places:
            return [*found.warnings, f"{found.missing}; it gets its probe if that is loaded"]
        files = {id(one.file): one.file for one in places.images}.values()
        by_name = {file.path: file for file in files}
        inside = [(by_name[one.place.image], one.place) for one in found.places if one.place is not None]
        return [*found.warnings, *_refusals(inside, len(found.places))]


def _check_in_file(wish: EventWish) -> list[str]:
    location = wish.make_spec().location
    try:
        with open_image(Path(wish.path)) as file:
            if location.image != wish.path:
                # It is of another image, which processes have loaded besides.
                return []
            found = resolve_in_image(file, location, with_inlined=wish.with_inlined)
            if not found.places:
                raise UsageError(f"{found.missing}; IMAGE!LOC is of another image of the process")
            return [*found.warnings, *_refusals([(file, one) for one in found.places], len(found.places))]
    except BinaryError as error:
        raise UsageError(error.message) from error


def _refusals(places: list[tuple[ImageFile, ImagePlace]], n_places: int) -> list[str]:
    """Why there is no probe at some of the places. Raises UsageError if there is at none."""
    codes: dict[ElfFile, ImageCode] = {}
    refusals = []
    for file, place in places:
        if place.kind == PlaceKind.CHOOSER:
            continue
        try:
            if file.elf not in codes:
                codes[file.elf] = read_code(file)
            code, image = find_function(codes[file.elf], place.address)
            plan_site(place.address, code, image.entries)
        except UsageError as error:
            refusals.append(f"{place.name}: no probe there: {error.message}")
    if refusals and len(refusals) == n_places:
        raise UsageError(refusals[0])
    return refusals
