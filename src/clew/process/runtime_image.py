"""The runtime's image: a static-pie ELF file, read, checked and laid out for an address.

Runs in the controller. Pure but for reading the one file; what is done with the bytes is the injector's business.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final

from clew.address import RemoteAddress
from clew.binary.architectures.known import native_architecture
from clew.dataclass import dataclass, field
from clew.errors import RuntimeImageError
from clew.process.linux import PROT_EXEC, PROT_READ, PROT_WRITE
from clew.process.shared_layout import PAGE_BYTES
from clew.protocol._constants import NOTE_NAME, NOTE_TYPE, SCHEMA_HASH, VERSION

__all__ = ["RuntimeImage", "Segment", "default_runtime_path", "load_runtime_image", "parse_runtime_image"]

MAX_IMAGE_BYTES: Final = 64 << 20

_ET_DYN = 3
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP, _PT_NOTE, _PT_GNU_RELRO = 1, 2, 3, 4, 0x6474E552
_PF_EXEC, _PF_WRITE, _PF_READ = 1, 2, 4
_DT_NEEDED, _DT_RELA, _DT_RELASZ, _DT_RELR, _DT_RELRSZ, _DT_JMPREL = 1, 7, 8, 36, 35, 23


@dataclass(frozen=True)
class Segment:
    """A part of the image in memory: page-aligned offset from the base, length in whole pages, PROT_* bits."""

    offset: int
    size_bytes: int
    protection: int


@dataclass(frozen=True)
class RuntimeImage:
    """A checked image. `content` is its memory from offset 0, as long as the file fills it; the rest up to
    `memory_bytes` is zero. `relocations` are pairs (offset, addend) of 64-bit words that hold base + addend.
    `segments` are in order of their offset, with the protection they have in the end.
    """

    path: Path
    entry_offset: int
    memory_bytes: int
    content: bytes
    relocations: tuple[tuple[int, int], ...]
    segments: tuple[Segment, ...]
    _relocated: dict[RemoteAddress, bytes] = field(default_factory=dict)

    def relocated(self, base: RemoteAddress) -> bytes:
        """`content` as it has to be when the image is at `base`."""
        # Nearly all processes have it at the same base, and a build is thousands of them.
        if base not in self._relocated:
            content = bytearray(self.content)
            for offset, addend in self.relocations:
                struct.pack_into("<Q", content, offset, (base + addend) & 0xFFFFFFFFFFFFFFFF)
            self._relocated[base] = bytes(content)
        return self._relocated[base]


def default_runtime_path() -> Path:
    """Where the runtime's image is: beside the package, or where the environment variable CLEW_RUNTIME says."""
    override = os.environ.get("CLEW_RUNTIME")
    return (
        Path(override)
        if override
        else Path(__file__).resolve().parent.parent / "_runtime" / f"clew-runtime-{native_architecture().name}"
    )


def load_runtime_image(path: Path | None = None) -> RuntimeImage:
    """Read and check the image at `path`. Raises RuntimeImageError if it is missing, damaged or of another version."""
    path = default_runtime_path() if path is None else path
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RuntimeImageError(
            path, f"{(error.strerror or 'unreadable').lower()}; reinstall clew, or run `make build` in its repository"
        ) from error
    return parse_runtime_image(path, data)


def parse_runtime_image(path: Path, data: bytes) -> RuntimeImage:
    """Parse and check an image. Raises RuntimeImageError if it breaks a rule."""
    try:
        return _parse(path, data)
    except (struct.error, OverflowError) as error:
        raise RuntimeImageError(path, "truncated or damaged") from error


def _parse(path: Path, data: bytes) -> RuntimeImage:
    if data[:6] != b"\x7fELF\x02\x01":
        raise RuntimeImageError(path, "not a 64-bit little-endian ELF file")
    kind, machine, _, entry, header_offset = struct.unpack_from("<HHIQQ", data, 16)
    header_bytes, header_count = struct.unpack_from("<HH", data, 54)
    architecture = native_architecture()
    if (kind, machine) != (_ET_DYN, architecture.machine) or header_bytes != 56:
        raise RuntimeImageError(path, f"not a static position-independent program for {architecture.title}")
    headers = [struct.unpack_from("<IIQQQQQQ", data, header_offset + 56 * index) for index in range(header_count)]
    if any(header[0] == _PT_INTERP for header in headers):
        raise RuntimeImageError(path, "wants an ELF interpreter; it has to be a static-pie")
    _check_note(path, data, headers)

    loads = [header for header in headers if header[0] == _PT_LOAD]
    memory_bytes = _page_up(max((address + memory for _, _, _, address, _, _, memory, _ in loads), default=0))
    if not 0 < memory_bytes <= MAX_IMAGE_BYTES:
        raise RuntimeImageError(path, f"takes {memory_bytes} bytes of memory; expected up to {MAX_IMAGE_BYTES}")
    if any(in_file > in_memory or offset + in_file > len(data) for _, _, offset, _, _, in_file, in_memory, _ in loads):
        raise RuntimeImageError(path, "truncated or damaged")
    content = bytearray(max(address + in_file for _, _, _, address, _, in_file, _, _ in loads))
    segments = []
    for _, flags, offset, address, _, in_file, in_memory, _ in loads:
        content[address : address + in_file] = data[offset : offset + in_file]
        protection = (
            PROT_READ * bool(flags & _PF_READ)
            | PROT_WRITE * bool(flags & _PF_WRITE)
            | PROT_EXEC * bool(flags & _PF_EXEC)
        )
        if protection & PROT_WRITE and protection & PROT_EXEC:
            raise RuntimeImageError(path, "has a segment that is writable and executable")
        start = address // PAGE_BYTES * PAGE_BYTES
        segments.append(Segment(start, _page_up(address + in_memory) - start, protection))
    for _, _, _, address, _, _, in_memory, _ in (header for header in headers if header[0] == _PT_GNU_RELRO):
        start, end = address // PAGE_BYTES * PAGE_BYTES, (address + in_memory) // PAGE_BYTES * PAGE_BYTES
        if end > start:
            segments.append(Segment(start, end - start, PROT_READ))
    if entry >= len(content):
        raise RuntimeImageError(path, "its entry is outside of it")
    dynamic = next((header for header in headers if header[0] == _PT_DYNAMIC), None)
    relocations = () if dynamic is None else _relocations(path, bytes(content), dynamic[3], dynamic[6])
    return RuntimeImage(path, entry, memory_bytes, bytes(content), relocations, tuple(segments))


def _check_note(path: Path, data: bytes, headers: list[tuple[int, ...]]) -> None:
    for _, _, offset, _, _, in_file, _, align in (header for header in headers if header[0] == _PT_NOTE):
        at, end = offset, offset + in_file
        step = 8 if align == 8 else 4
        while at + 12 <= end:
            name_bytes, content_bytes, note_type = struct.unpack_from("<III", data, at)
            name_at = at + 12
            content_at = name_at + -(-name_bytes // step) * step
            if note_type == NOTE_TYPE and data[name_at : name_at + name_bytes] == NOTE_NAME:
                version, _, schema_hash = struct.unpack_from("<II32s", data, content_at)
                if version != VERSION or schema_hash != SCHEMA_HASH:
                    raise RuntimeImageError(
                        path,
                        f"speaks another protocol (version {version}, hash {schema_hash.hex()[:12]}) than this clew "
                        f"(version {VERSION}, hash {SCHEMA_HASH.hex()[:12]}); reinstall clew, or run `make build`",
                    )
                return
            at = content_at + -(-content_bytes // step) * step
    raise RuntimeImageError(path, "has no note that says its protocol version; it is no runtime of clew")


def _relocations(path: Path, content: bytes, dynamic_offset: int, dynamic_bytes: int) -> tuple[tuple[int, int], ...]:
    tags: dict[int, int] = {}
    table = content[dynamic_offset : dynamic_offset + dynamic_bytes // 16 * 16]
    for tag, value in struct.iter_unpack("<qQ", table):
        if tag == 0:
            break
        tags[tag] = value
    if _DT_NEEDED in tags or _DT_JMPREL in tags:
        raise RuntimeImageError(path, "needs libraries; it has to be a static-pie")
    relocations: list[tuple[int, int]] = []
    rela, rela_bytes = tags.get(_DT_RELA, 0), tags.get(_DT_RELASZ, 0)
    if rela + rela_bytes > len(content) or rela_bytes % 24:
        raise RuntimeImageError(path, "truncated or damaged")
    for offset, info, addend in struct.iter_unpack("<QQq", content[rela : rela + rela_bytes]):
        if info == native_architecture().relative_relocation:
            relocations.append((offset, addend))
        elif info != native_architecture().none_relocation:
            raise RuntimeImageError(path, f"has a relocation of type {info & 0xFFFFFFFF}; only relative ones are known")
    relr, relr_bytes = tags.get(_DT_RELR, 0), tags.get(_DT_RELRSZ, 0)
    if relr + relr_bytes > len(content) or relr_bytes % 8:
        raise RuntimeImageError(path, "truncated or damaged")
    relocations += [
        (offset, struct.unpack_from("<Q", content, offset)[0])
        for offset in _relr_offsets(content[relr : relr + relr_bytes])
    ]
    if any(offset + 8 > len(content) for offset, _ in relocations):
        raise RuntimeImageError(path, "has a relocation outside of its content")
    return tuple(relocations)


def _relr_offsets(table: bytes) -> list[int]:
    """Offsets in a DT_RELR table: an even word is an offset, an odd one a bitmap of the 63 words after the last."""
    offsets = []
    next_offset = 0
    for (word,) in struct.iter_unpack("<Q", table):
        if word & 1 == 0:
            offsets.append(word)
            next_offset = word + 8
        else:
            offsets += [next_offset + 8 * bit for bit in range(63) if word >> (bit + 1) & 1]
            next_offset += 63 * 8
    return offsets


def _page_up(value: int) -> int:
    return -(-value // PAGE_BYTES) * PAGE_BYTES
