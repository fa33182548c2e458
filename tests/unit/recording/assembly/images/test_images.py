"""Which image code belongs to, through mapping, unmapping and mapping again."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from clew.address import FileOffset, RemoteAddress
from clew.binary.elf import PF_X, PT_LOAD, open_elf
from clew.protocol._generated import UNMAP_RECORD
from clew.recording.assembly.images.images import ImageFiles, ImageMap, build_image_map
from clew.recording.assembly.records.records import ImageMapping
from clew.recording.raw.process import RawImage

BASE = 0x7F0000000000


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("images") / "library.so"
    source = "int answer(void) { return 42; }"
    command = ["gcc", "-shared", "-fPIC", "-Wl,--build-id", "-xc", "-", "-o", str(path)]
    subprocess.run(command, input=source, text=True, check=True)
    return path


def raw_image(path: str, start: int, size: int = 0x1000, file_offset: int = 0, inode: int = 0) -> RawImage:
    end = RemoteAddress(start + size)
    return RawImage(path, RemoteAddress(start), end, FileOffset(file_offset), 5, 0, inode)


def mapping(path: str, start: int, tsc: int, size: int = 0x1000) -> ImageMapping:
    return ImageMapping(start, start + size, 0, 0, 0, 5, path, tsc)


def unmaps(*rows: tuple[int, int, int]) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Rows of (start, size, tsc)."""
    table = np.zeros(len(rows), UNMAP_RECORD)
    for at, (start, size, tsc) in enumerate(rows):
        table[at]["start"], table[at]["size_bytes"], table[at]["tsc"] = start, size, tsc
    return table


def locate(images: ImageMap, *places: tuple[int, int]) -> list[int]:
    """Images at (pc, tsc), which are sorted by pc."""
    pc, tsc = np.array(places, np.uint64).T
    found: list[int] = images.locate(pc, tsc).tolist()
    return found


def test_base_and_names_come_from_the_file(library: Path) -> None:
    with open_elf(library) as elf:
        code = next(segment for segment in elf.segments if segment.kind == PT_LOAD and segment.flags & PF_X)
        build_id = elf.build_id
    page = code.file_offset // 4096 * 4096
    start = BASE + code.address // 4096 * 4096
    images = build_image_map([raw_image(str(library), start, file_offset=page)], [], unmaps(), ImageFiles())
    (image,) = images.images
    assert (image.base, image.build_id) == (BASE, build_id)
    assert image.size_bytes >= code.address + code.memory_bytes
    assert image.symbols is not None
    assert image.symbols.find_by_name("answer")
    assert locate(images, (start - 1, 5), (start, 5), (start + 0x1000, 5)) == [-1, 0, -1]


def test_file_that_is_gone_or_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    paths = ["/no/such/file", str(tmp_path / "pipe"), "/dev/zero", "relative", "\udcff"]
    raw = [raw_image(path, BASE + at * 0x10000, file_offset=0x1000) for at, path in enumerate(paths)]
    images = build_image_map(raw, [], unmaps(), ImageFiles())
    assert [image.base for image in images.images] == [BASE + at * 0x10000 - 0x1000 for at in range(len(paths))]
    assert all(image.symbols is None for image in images.images)


def test_file_that_was_replaced_gives_no_names(library: Path) -> None:
    status = library.stat()
    raw = RawImage(str(library), RemoteAddress(BASE), RemoteAddress(BASE + 0x1000), FileOffset(0), 5, status.st_dev, 1)
    (image,) = build_image_map([raw], [], unmaps(), ImageFiles()).images
    assert image.symbols is None


def test_memory_without_a_file_is_no_image() -> None:
    names = ["", "[heap]", "[stack]", "[vsyscall]"]
    images = build_image_map(
        [raw_image(name, BASE + at * 0x1000) for at, name in enumerate(names)], [], unmaps(), ImageFiles()
    )
    assert images.images == []


def test_vdso_is_an_image_with_names() -> None:
    (image,) = build_image_map([raw_image("[vdso]", BASE, 0x2000)], [], unmaps(), ImageFiles()).images
    assert (image.base, image.size_bytes) == (BASE, 0x2000)
    assert image.symbols is not None
    assert image.symbols.find_by_name("__vdso_clock_gettime")


def test_one_after_another_at_one_address() -> None:
    """A library is unloaded, and another one comes to where it was; then memory without a file."""
    later = [mapping("/lib/b", BASE, 200), mapping("/lib/a", BASE, 100), mapping("", BASE, 300)]
    images = build_image_map([], later, unmaps((BASE, 0x1000, 150)), ImageFiles())
    assert [image.path for image in images.images] == ["/lib/a", "/lib/b"]
    assert [image.unloaded_tsc for image in images.images] == [150, None]
    assert locate(images, (BASE, 120), (BASE + 1, 220), (BASE + 2, 320)) == [0, 1, -1]


def test_segments_of_one_file_are_one_image() -> None:
    raw = [raw_image("/lib/a", BASE + at, file_offset=at) for at in (0x1000, 0x5000)]
    images = build_image_map(raw, [], unmaps((BASE + 0x1000, 0x1000, 50)), ImageFiles())
    (image,) = images.images
    assert (image.base, image.unloaded_tsc) == (BASE, None)
    assert image.size_bytes == 0x6000
