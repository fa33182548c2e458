"""The code of the images of a process, decoded once for each.

Runs in the controller.
"""

from __future__ import annotations

import bisect

from clew.errors import UsageError
from clew.probing.locations.in_process import LoadedImage, ProcessPlaces
from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.image_code import ImageCode, read_image_code

__all__ = ["ProcessCode"]


class ProcessCode:
    """Of one process. What is in `places` may change; images keep their code as long as they are where they are."""

    def __init__(self, places: ProcessPlaces) -> None:
        self._places = places
        self._known: dict[tuple[str, int], tuple[ImageCode, list[int]]] = {}

    def find(self, address: int) -> tuple[FunctionCode, ImageCode]:
        """The function at an address, and the code of its image. Raises UsageError where none is known."""
        image = next((one for one in self._places.images if one.has(address)), None)
        if image is None:
            raise UsageError(f"{address:#x}: no file's code is there")
        code, starts = self._read(image)
        index = bisect.bisect_right(starts, address) - 1
        if index < 0 or address >= code.functions[index].end:
            raise UsageError(f"{address:#x}: in none of the functions that {image.file.elf.path} tells of")
        return code.functions[index], code

    def _read(self, image: LoadedImage) -> tuple[ImageCode, list[int]]:
        key = (str(image.file.elf.path), image.bias)
        if key not in self._known:
            elf = image.file.elf
            code = read_image_code(elf, image.bias + elf.lowest_address)
            code.functions.sort(key=lambda one: one.start)
            self._known[key] = (code, [one.start for one in code.functions])
        return self._known[key]
