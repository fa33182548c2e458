"""ELF headers: segments, sections, build-id.

Runs in the controller. Reads 64-bit little-endian files, of any architecture; symbols are `clew.binary.symbols`'.

A file may be hostile: it is opened without waiting (it may be a pipe), read by offset and never mapped (it may shrink),
and no count or size in it is believed beyond the limits below.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from clew.address import FileOffset, ImageOffset
from clew.binary.architectures.architecture import Architecture
from clew.binary.architectures.known import architecture_of_machine
from clew.dataclass import dataclass
from clew.errors import BinaryError

__all__ = ["ElfFile", "Section", "Segment", "open_elf", "open_elf_bytes"]

MAX_SEGMENTS: Final = 512
MAX_SECTIONS: Final = 65536
MAX_NOTE_BYTES: Final = 65536
MAX_READ_BYTES: Final = 1 << 30

ET_EXEC: Final = 2
ET_DYN: Final = 3
PT_LOAD: Final = 1
PT_DYNAMIC: Final = 2
PT_NOTE: Final = 4
PT_GNU_EH_FRAME: Final = 0x6474E550
PF_X: Final = 1
SHF_EXECINSTR: Final = 4
NT_GNU_BUILD_ID: Final = 3

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")


@dataclass(frozen=True)
class Segment:
    """A program header: `file_bytes` at `file_offset` are loaded at `address` and take `memory_bytes` there, aligned to
    `alignment`."""

    kind: int
    flags: int
    file_offset: FileOffset
    address: int
    file_bytes: int
    memory_bytes: int
    alignment: int


@dataclass(frozen=True)
class Section:
    """A section header."""

    name: str
    kind: int
    flags: int
    address: int
    file_offset: FileOffset
    size_bytes: int
    link: int
    entry_bytes: int


class ElfFile:
    """An open ELF file. `kind` is ET_EXEC, ET_DYN, ...; `machine` is EM_*. Made by `open_elf`.

    Addresses in headers and symbols are *link addresses*; an image offset is one of them less `lowest_address`.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BinaryError(path, "not a regular file")
        self.size_bytes = status.st_size
        self.device, self.inode = status.st_dev, status.st_ino
        header = self.read(FileOffset(0), _HEADER.size)
        if len(header) < _HEADER.size or header[:4] != b"\x7fELF":
            raise BinaryError(path, "not an ELF file")
        if header[4] != 2 or header[5] != 1:
            raise BinaryError(path, "not a 64-bit little-endian ELF file")
        fields = _HEADER.unpack(header)
        self.kind, self.machine, self.entry = fields[1], fields[2], fields[4]
        self._page_bytes = (architecture_of_machine(self.machine) or Architecture).page_bytes
        self._section_offset, self._section_size = fields[6], fields[11]
        self._n_sections, self._names_index = fields[12], fields[13]
        self.segments = self._read_segments(fields[5], fields[9], fields[10])
        loaded = [one for one in self.segments if one.kind == PT_LOAD]
        self._lowest = self._page_of(min((one.address for one in loaded), default=0))
        self._loaded = [
            (one.address, one.address + one.file_bytes, one.file_offset, one.flags & PF_X != 0) for one in loaded
        ]
        """Where the file's bytes are, from where up to where, where in the file; and whether they are code."""
        self._sections: list[Section] | None = None

    def read(self, offset: FileOffset, size_bytes: int) -> bytes:
        """Up to `size_bytes` bytes at `offset`; fewer where the file ends."""
        if offset < 0 or size_bytes <= 0 or offset >= self.size_bytes:
            return b""
        wanted = min(size_bytes, self.size_bytes - offset, MAX_READ_BYTES)
        try:
            return os.pread(self._descriptor, wanted, offset)
        except OSError as error:
            raise BinaryError(self.path, error.strerror or str(error)) from error

    @property
    def descriptor(self) -> int:
        """What it is open as, by which it can be opened again (/proc/self/fd)."""
        return self._descriptor

    @property
    def lowest_address(self) -> int:
        """Link address of the first page that is loaded; 0 if nothing is."""
        return self._lowest

    @property
    def loaded_bytes(self) -> int:
        """Bytes from the first page that is loaded to the end of the last."""
        ends = [segment.address + segment.memory_bytes for segment in self.segments if segment.kind == PT_LOAD]
        return self._page_behind(max(ends, default=0)) - self.lowest_address

    @property
    def sections(self) -> list[Section]:
        """Section headers, in the file's order; empty if it has none."""
        if self._sections is None:
            self._sections = self._read_sections()
        return self._sections

    def find_section(self, name: str) -> Section | None:
        """The first section of that name."""
        return next((section for section in self.sections if section.name == name), None)

    def find_address(self, offset: FileOffset) -> int | None:
        """Link address of the byte at `offset`, in the segment that loads it; by whole pages, as it is mapped."""
        for segment in self.segments:
            first = self._page_of(segment.file_offset)
            last = self._page_behind(segment.file_offset + segment.file_bytes)
            if segment.kind == PT_LOAD and segment.flags & PF_X and first <= offset < last:
                return segment.address + offset - segment.file_offset
        return None

    def find_file_offset(self, address: int) -> FileOffset | None:
        """Where in the file the byte is that is loaded at a link address; None where none is."""
        for start, end, file_offset, _ in self._loaded:
            if start <= address < end:
                return FileOffset(file_offset + address - start)
        return None

    def is_code(self, address: int) -> bool:
        """Whether what is at a link address comes from the file and is executed."""
        return any([is_code and start <= address < end for start, end, _, is_code in self._loaded])  # noqa: C419

    def image_offset(self, address: int) -> ImageOffset:
        """Image offset of a link address."""
        return ImageOffset(address - self.lowest_address)

    def _page_of(self, place: int) -> int:
        """Where the page begins that has an address or offset."""
        return place // self._page_bytes * self._page_bytes

    def _page_behind(self, end: int) -> int:
        """Where the last page ends of what ends there."""
        return -(-end // self._page_bytes) * self._page_bytes

    @property
    def build_id(self) -> str | None:
        """The build-id in hexadecimal, if the file has one."""
        for segment in self.segments:
            if segment.kind == PT_NOTE:
                build_id = _find_build_id(self.read(segment.file_offset, min(segment.file_bytes, MAX_NOTE_BYTES)))
                if build_id:
                    return build_id.hex()
        return None

    def _read_segments(self, offset: int, entry_bytes: int, count: int) -> list[Segment]:
        if entry_bytes < _SEGMENT.size:
            return []
        table = self.read(FileOffset(offset), entry_bytes * min(count, MAX_SEGMENTS))
        segments = []
        for at in range(0, len(table) - _SEGMENT.size + 1, entry_bytes):
            kind, flags, file_offset, address, _, file_bytes, memory_bytes, alignment = _SEGMENT.unpack_from(table, at)
            if address + memory_bytes < 1 << 64 and file_offset + file_bytes < 1 << 63:
                place = FileOffset(file_offset)
                segments.append(Segment(kind, flags, place, address, file_bytes, memory_bytes, alignment))
        return segments

    def _read_sections(self) -> list[Section]:
        if self._section_size < _SECTION.size or not self._section_offset:
            return []
        count = min(self._n_sections, MAX_SECTIONS)
        table = self.read(FileOffset(self._section_offset), self._section_size * count)
        rows = [_SECTION.unpack_from(table, at) for at in range(0, len(table) - _SECTION.size + 1, self._section_size)]
        names = b""
        if self._names_index < len(rows):
            names = self.read(FileOffset(rows[self._names_index][4]), min(rows[self._names_index][5], 1 << 20))
        return [
            Section(
                names[row[0] : names.find(b"\0", row[0])].decode("utf-8", "replace") if row[0] < len(names) else "",
                row[1],
                row[2],
                row[3],
                FileOffset(row[4]),
                row[5],
                row[6],
                row[9],
            )
            for row in rows
        ]


@contextmanager
def open_elf(path: Path) -> Iterator[ElfFile]:
    """The ELF file at `path`. Raises BinaryError if it is none, or can't be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise BinaryError(path, getattr(error, "strerror", None) or str(error)) from error
    try:
        yield ElfFile(path, descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def open_elf_bytes(content: bytes, name: str) -> Iterator[ElfFile]:
    """An ELF file that is in memory, and called `name`. Raises BinaryError if it is none, OSError."""
    descriptor = os.memfd_create("image", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        yield ElfFile(Path(name), descriptor)
    finally:
        os.close(descriptor)


def _find_build_id(notes: bytes) -> bytes | None:
    at = 0
    while at + 12 <= len(notes):
        name_bytes, content_bytes, kind = struct.unpack_from("<III", notes, at)
        content_at = at + 12 + -(-name_bytes // 4) * 4
        if kind == NT_GNU_BUILD_ID and notes[at + 12 : at + 16] == b"GNU\0" and content_bytes <= 64:
            return notes[content_at : content_at + content_bytes]
        at = content_at + -(-content_bytes // 4) * 4
    return None
