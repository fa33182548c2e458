"""The code of files and of the images of a process, decoded once for each.

Runs in the controller.
"""

from __future__ import annotations

import bisect
import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from clew.errors import UsageError
from clew.probing.locations.image_file import ImageFile
from clew.probing.locations.in_process import ProcessPlaces
from clew.probing.native import FunctionCode, ImageCode, read_image_code

__all__ = ["KnownCode", "ProcessCode", "find_function", "read_code"]

_MAX_KNOWN: Final = 12
"""Each may be a hundred megabytes."""


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


class KnownCode:
    """The code of some images, for processes in which the same files lie at the same addresses: forks' children of one,
    and one that is left and probed again."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, ...], ImageCode] = OrderedDict()

    def read(self, file: ImageFile, bias: int) -> ImageCode:
        """The code of a file, at addresses that are so much more than link addresses."""
        status = os.fstat(file.elf.descriptor)
        key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, bias)
        if key not in self._known:
            self._known[key] = read_code(file, bias)
        self._known.move_to_end(key)
        while len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)
        return self._known[key]


class ProcessCode:
    """Of one process. What is in `places` may change; images keep their code as long as they are where they are."""

    def __init__(self, places: ProcessPlaces, read: Callable[[ImageFile, int], ImageCode] = read_code) -> None:
        self._places, self._read = places, read
        self._known: dict[tuple[str, int], ImageCode] = {}

    def find(self, address: int) -> tuple[FunctionCode, ImageCode]:
        """The function at an address, and the code of its image. Raises UsageError where none is known."""
        image = next((one for one in self._places.images if one.has(address)), None)
        if image is None:
            raise UsageError(f"{address:#x}: no file's code is there")
        key = (str(image.file.elf.path), image.bias)
        if key not in self._known:
            self._known[key] = self._read(image.file, image.bias)
        return find_function(self._known[key], address)
