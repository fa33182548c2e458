"""Which file every piece of code came from, when, and how it is called there.

Runs in the controller, after the target ended. Reads the files that the target had mapped; paths and their contents are
the target's word and may be made up, so a file that is not what was mapped gives no names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.address import FileOffset
from clew.binary.elf import ElfFile, open_elf
from clew.binary.symbols import SymbolTable, read_symbols
from clew.binary.vdso import VDSO_NAME, open_vdso
from clew.dataclass import dataclass, replace
from clew.errors import BinaryError
from clew.recording.assembly.images.mapped import MappedSpans
from clew.recording.assembly.records.bundles import Bundle
from clew.recording.assembly.records.records import ImageMapping
from clew.recording.raw.process import RawImage

__all__ = ["Image", "ImageFiles", "ImageMap", "build_image_map", "join_image_maps"]

Array = npt.NDArray[Any]

_MAX_LOOKUPS = 1 << 31
"""Mappings that overlap each other more than this were made up to keep the controller busy."""
_DELETED = " (deleted)"


@dataclass
class Image:
    """A loaded file. `base` is the address of its lowest page; time stamps are of its first and last mapping.

    `owner` says which process of a bundle has it.
    """

    path: str
    base: int
    size_bytes: int
    build_id: str | None
    loaded_tsc: int
    unloaded_tsc: int | None = None
    symbols: SymbolTable | None = None
    owner: int = 0


@dataclass(frozen=True)
class _Placed:
    """Addresses from `start` up to `end`, from time stamp `tsc` on: image `image`, or -1 for none."""

    start: int
    end: int
    tsc: int
    image: int


@dataclass
class ImageMap:
    """Images of a process, and where each was mapped when. `is_complete` turns false when looking up was given up."""

    images: list[Image]
    placed: list[_Placed]
    is_complete: bool = True

    def locate(self, pc: Array, tsc: Array) -> Array:
        """The image (index) at each address at a time stamp; -1 outside of images. `pc` must be sorted."""
        newest = np.full(len(pc), -1)
        by_span: dict[tuple[int, int], list[int]] = {}
        for number, place in enumerate(self.placed):
            by_span.setdefault((place.start, place.end), []).append(number)
        lookups = 0
        # Programs that make code map the same addresses over and over: of these only the last before a block matters.
        for span, numbers in by_span.items():
            first, last = np.searchsorted(pc, np.array(span, np.uint64)).tolist()
            lookups += last - first
            if lookups > _MAX_LOOKUPS:
                self.is_complete = False
                break
            since = np.array([self.placed[number].tsc for number in numbers], np.uint64)
            at = np.searchsorted(since, tsc[first:last], "right") - 1
            latest = np.where(at >= 0, np.array(numbers)[at], -1)
            np.maximum(newest[first:last], latest, out=newest[first:last])
        # The last one stands for none.
        image = np.array([*(place.image for place in self.placed), -1], np.int64)
        found: Array = image[newest]
        return found


class ImageFiles:
    """What is needed of files, each read once, however many processes map it."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, int, int], _FileFacts] = {}

    def read(self, path: str, device: int, inode: int) -> _FileFacts:
        """Facts of the file `path`, if it is still the one that was mapped."""
        key = path, device, inode
        if key not in self._facts:
            self._facts[key] = _read_facts(path, device, inode)
        return self._facts[key]


def build_image_map(
    initial: Sequence[RawImage], mappings: Sequence[ImageMapping], unmaps: Array, files: ImageFiles
) -> ImageMap:
    """Images out of the first mappings of a process, those it made later, and those it took away."""
    builder = _ImageMapBuilder(files)
    for image in initial:
        if not image.path.startswith("[") or image.path == VDSO_NAME:
            builder.place(image.path, image.start, image.end, image.file_offset, image.device, image.inode, 0)
    going = [(int(row["tsc"]), int(row["start"]), int(row["start"]) + int(row["size_bytes"])) for row in unmaps]
    going.sort()
    n_gone = 0
    for mapping in sorted(mappings, key=lambda mapping: mapping.tsc):
        while n_gone < len(going) and going[n_gone][0] <= mapping.tsc:
            builder.unmap(*going[n_gone])
            n_gone += 1
        builder.place(
            mapping.path, mapping.start, mapping.end, mapping.file_offset, mapping.device, mapping.inode, mapping.tsc
        )
    for gone in going[n_gone:]:
        builder.unmap(*gone)
    return ImageMap(builder.images, builder.placed)


def join_image_maps(maps: Sequence[ImageMap], bundle: Bundle) -> ImageMap:
    """The image maps of the processes of a bundle as one, at the bundle's addresses."""
    images: list[Image] = []
    placed: list[_Placed] = []
    for owner, one in enumerate(maps):
        place = bundle.place(owner)
        placed += [
            _Placed(row.start + place, row.end + place, row.tsc, row.image + len(images) if row.image >= 0 else -1)
            for row in one.placed
        ]
        images += [replace(image, owner=owner) for image in one.images]
    return ImageMap(images, placed)


class _ImageMapBuilder:
    def __init__(self, files: ImageFiles) -> None:
        self.images: list[Image] = []
        self.placed: list[_Placed] = []
        self._known: dict[tuple[str, int, int, int], int] = {}
        self._mapped = MappedSpans()
        self._n_mapped: list[int] = []
        self._files = files

    def place(self, path: str, start: int, end: int, file_offset: int, device: int, inode: int, tsc: int) -> None:
        """Executable memory at `start` up to `end`, from the file `path` (empty: from no file) at `file_offset`."""
        if not path:
            self.placed.append(_Placed(start, end, tsc, -1))
            return
        facts = self._files.read(path, device, inode)
        base = facts.base(start, file_offset)
        key = (path, device, inode, base)
        index = self._known.get(key)
        if index is None:
            index = self._known[key] = len(self.images)
            size_bytes = facts.size_bytes or end - base
            self.images.append(Image(path, base, size_bytes, facts.build_id, tsc, symbols=facts.symbols))
            self._n_mapped.append(0)
        image = self.images[index]
        self._mapped.add(start, end, index)
        self._n_mapped[index] += 1
        image.unloaded_tsc = None
        image.size_bytes = max(image.size_bytes, end - image.base)
        self.placed.append(_Placed(start, end, tsc, index))

    def unmap(self, tsc: int, start: int, end: int) -> None:
        """Memory at `start` up to `end` went; an image is unloaded when all its code has gone."""
        for index in self._mapped.remove(start, end):
            self._n_mapped[index] -= 1
            if not self._n_mapped[index]:
                self.images[index].unloaded_tsc = tsc


@dataclass(frozen=True)
class _FileFacts:
    """What is needed of a mapped file; nothing where it could not be read."""

    size_bytes: int
    build_id: str | None
    symbols: SymbolTable | None
    elf: ElfFile | None

    def base(self, start: int, file_offset: int) -> int:
        """Address of the file's lowest page, when its `file_offset` is at `start`."""
        if self.elf is not None:
            address = self.elf.find_address(FileOffset(file_offset))
            if address is not None and start >= address - self.elf.lowest_address:
                return start - (address - self.elf.lowest_address)
        return max(start - file_offset, 0)


def _read_facts(path: str, device: int, inode: int) -> _FileFacts:
    if path == VDSO_NAME:
        return _FileFacts(0, None, _read_own_vdso(), None)
    try:
        with open_elf(Path(path.removesuffix(_DELETED))) as elf:
            if elf.device == device and elf.inode != inode:
                return _FileFacts(0, None, None, None)
            size_bytes = elf.loaded_bytes if elf.loaded_bytes < 1 << 46 else 0
            return _FileFacts(size_bytes, elf.build_id, read_symbols(elf), elf)
    except BinaryError:
        return _FileFacts(0, None, None, None)


def _read_own_vdso() -> SymbolTable | None:
    """Symbols of this process's vDSO, which is the same code in every process of a machine."""
    try:
        with open_vdso() as elf:
            return read_symbols(elf)
    except (OSError, ValueError, BinaryError):
        return None
