"""The code of files and of the images of a process, decoded once for each.

Runs in the controller.
"""

from __future__ import annotations

import bisect

from clew.errors import UsageError
from clew.probing.locations.image_file import ImageFile
from clew.probing.locations.in_process import ProcessPlaces
from clew.probing.native import FunctionCode, ImageCode, read_image_code

__all__ = ["ProcessCode", "find_function", "read_code"]


def read_code(file: ImageFile, bias: int = 0) -> ImageCode:
    """The code of a file, at addresses that are so much more than link addresses; its functions are sorted."""
    code = read_image_code(file.elf, bias + file.elf.lowest_address)
    code.functions.sort(key=lambda one: one.start)
    return code


def find_function(code: ImageCode, address: int) -> tuple[FunctionCode, ImageCode]:
    """The function at an address, and the code that it is of. Raises UsageError where none is known."""
    index = bisect.bisect_right(code.functions, address, key=lambda one: one.start) - 1
    if index < 0 or address >= code.functions[index].end:
        raise UsageError(f"{address:#x}: in no function that is known")
    return code.functions[index], code


class ProcessCode:
    """Of one process. What is in `places` may change; images keep their code as long as they are where they are."""

    def __init__(self, places: ProcessPlaces) -> None:
        self._places = places
        self._known: dict[tuple[str, int], ImageCode] = {}

    def find(self, address: int) -> tuple[FunctionCode, ImageCode]:
        """The function at an address, and the code of its image. Raises UsageError where none is known."""
        image = next((one for one in self._places.images if one.has(address)), None)
        if image is None:
            raise UsageError(f"{address:#x}: no file's code is there")
        key = (str(image.file.elf.path), image.bias)
        if key not in self._known:
            self._known[key] = read_code(image.file, image.bias)
        return find_function(self._known[key], address)
