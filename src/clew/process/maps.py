"""What /proc/PID/maps, /proc/PID/auxv and /proc/PID/limits say.

Runs in the controller. Paths in it are chosen by the target: any bytes may be in them.
"""

from __future__ import annotations

import os
import re
import resource
import struct
from pathlib import Path

from clew.address import FileOffset, Pid, RemoteAddress
from clew.dataclass import dataclass
from clew.process.linux import PROT_EXEC, PROT_READ, PROT_WRITE

__all__ = [
    "Mapping",
    "parse_auxiliary_vector",
    "parse_maps",
    "read_address_space_limit",
    "read_auxiliary_vector",
    "read_maps",
]

_LINE = re.compile(
    rb"([0-9a-f]{1,16})-([0-9a-f]{1,16}) ([r-])([w-])([x-])([ps]) ([0-9a-f]{1,16}) ([0-9a-f]+):([0-9a-f]+) (\d+) *(.*)"
)


@dataclass(frozen=True)
class Mapping:
    """One line of maps. `path` is empty for anonymous memory and may be a name such as `[vdso]`.

    `protection` holds PROT_* bits. `device` is a st_dev, 0 where there is no file.
    """

    start: RemoteAddress
    end: RemoteAddress
    protection: int
    is_shared: bool
    file_offset: FileOffset
    device: int
    inode: int
    path: str


def read_maps(pid: Pid) -> list[Mapping]:
    """The mappings of process `pid`, by address. Raises OSError if it is gone."""
    return parse_maps(Path(f"/proc/{pid}/maps").read_bytes())


def parse_maps(text: bytes) -> list[Mapping]:
    """Parse the text of a maps file; lines of another form are left out."""
    mappings = []
    for line in text.split(b"\n"):
        match = _LINE.fullmatch(line)
        if match is None:
            continue
        start, end, read, write, execute, sharing, offset, major, minor, inode, path = match.groups()
        protection = PROT_READ * (read == b"r") | PROT_WRITE * (write == b"w") | PROT_EXEC * (execute == b"x")
        mappings.append(
            # Not by name, which takes longer: each program that starts has some dozen.
            Mapping(
                RemoteAddress(int(start, 16)),
                RemoteAddress(int(end, 16)),
                protection,
                sharing == b"s",
                FileOffset(int(offset, 16)),
                os.makedev(int(major, 16), int(minor, 16)),
                int(inode),
                _decode_path(path),
            )
        )
    return mappings


def read_auxiliary_vector(pid: Pid) -> dict[int, int]:
    """The auxiliary vector of process `pid`: values by AT_* number."""
    return parse_auxiliary_vector(Path(f"/proc/{pid}/auxv").read_bytes())


def read_address_space_limit(pid: Pid) -> int:
    """The soft limit of the address space of process `pid`, bytes; resource.RLIM_INFINITY if there is none."""
    try:
        return resource.prlimit(pid, resource.RLIMIT_AS)[0]
    except PermissionError:
        # The file needs no right over the process, and takes longer.
        return _read_address_space_limit(pid)


def _read_address_space_limit(pid: Pid) -> int:
    for line in Path(f"/proc/{pid}/limits").read_text().splitlines():
        if line.startswith("Max address space"):
            soft = line.removeprefix("Max address space").split()[0]
            return int(soft) if soft.isdecimal() else resource.RLIM_INFINITY
    return resource.RLIM_INFINITY


def parse_auxiliary_vector(data: bytes) -> dict[int, int]:
    """Parse the bytes of an auxv file, up to its AT_NULL."""
    vector = {}
    for key, value in struct.iter_unpack("<QQ", data[: len(data) // 16 * 16]):
        if key == 0:
            break
        vector[key] = value
    return vector


def _decode_path(path: bytes) -> str:
    # The kernel escapes a newline in a path as \012 and nothing else.
    return os.fsdecode(path.replace(b"\\012", b"\n"))
