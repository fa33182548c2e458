"""The code of files and of the images of a process, decoded once for each, and code that no file has.

Runs in the controller.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from clew.errors import TargetError, UsageError
from clew.probing.locations.image_file import ImageFile
from clew.probing.locations.in_process import LoadedImage, ProcessPlaces
from clew.probing.native import FunctionCode, ImageCode, move_image, read_image_code, read_made_code

__all__ = ["KnownCode", "ProcessCode", "find_function", "read_code"]

_MAX_BYTES: Final = 8 << 20
"""Of code: what is known of it takes thirty times as much memory."""


def read_code(file: ImageFile) -> ImageCode:
    """The code of a file, at its link addresses."""
    return read_image_code(file.elf, file.elf.lowest_address)


def find_function(code: ImageCode, address: int) -> tuple[FunctionCode, ImageCode]:
    """The function at an address, and the code that it is of. Raises UsageError where none is known."""
    found = code.functions.find(address)
    if found is None:
        raise UsageError(f"{address:#x}: in no function that is known")
    return found, code


class KnownCode:
    """The code of files, each decoded once, for processes that have them at addresses of their own."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, ...], ImageCode] = OrderedDict()

    def read(self, file: ImageFile, bias: int) -> ImageCode:
        """The code of a file, at addresses that are so much more than link addresses."""
        status = os.fstat(file.elf.descriptor)
        key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        if key not in self._known:
            self._known[key] = read_code(file)
        self._known.move_to_end(key)
        while len(self._known) > 1 and sum(map(_count_bytes, self._known.values())) > _MAX_BYTES:
            self._known.popitem(last=False)
        return move_image(self._known[key], bias)


def _count_bytes(code: ImageCode) -> int:
    return code.functions[-1].end - code.functions[0].start if code.functions else 0


class ProcessCode:
    """Of one process. What is in `places` may change; images keep their code as long as they are where they are. `read`
    gives memory, without what probes change there, up to where it ends. Raises TargetError."""

    def __init__(self, places: ProcessPlaces, files: KnownCode, read: Callable[[int, int], bytes]) -> None:
        self._places, self._files, self._read = places, files, read
        self._known: dict[tuple[ImageFile, int], ImageCode] = {}
        self._made: list[ImageCode] = []
        self._last: LoadedImage | None = None
        self._last_images: list[LoadedImage] = []
        """The image that was asked for last, which mostly is next, too; and which images there were then."""

    def find(self, address: int) -> tuple[FunctionCode, ImageCode]:
        """The function at an address, and the code of its image. Raises UsageError where none is known."""
        image = self._image_at(address)
        if image is None:
            raise UsageError(f"{address:#x}: no file's code is there")
        key = image.file, image.bias
        if key not in self._known:
            self._known[key] = self._files.read(image.file, image.bias)
        return find_function(self._known[key], address)

    def find_any(self, address: int) -> tuple[FunctionCode, ImageCode]:
        """The same, or instructions from that address on where no file has code. Raises UsageError."""
        if self._image_at(address) is not None:
            return self.find(address)
        # What was decoded for another place of it, if it is the same still.
        self._made = [one for one in self._made if self._is_there(one.functions[0])]
        for made in self._made:
            if address in made.functions[0].index_of:
                return made.functions[0], made
        made = read_made_code(address, self._read)
        self._made.append(made)
        return made.functions[0], made

    def _image_at(self, address: int) -> LoadedImage | None:
        images = self._places.images
        if self._last is None or images is not self._last_images or not self._last.has(address):
            self._last, self._last_images = next((one for one in images if one.has(address)), None), images
        return self._last

    def _is_there(self, code: FunctionCode) -> bool:
        try:
            found = self._read(code.start, code.end - code.start)
        except TargetError:
            return False
        return found == code.code[: code.end - code.start]
