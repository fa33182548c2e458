"""The tables by which threads unwind their own stacks at probes: made of files, once each, and given to processes.

Runs in the controller. A table is about as large as the file's .eh_frame, and takes a tenth of a second for a large
one: such a one is made beside, in a thread, and until then the runtime asks what is behind frames of that file.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from clew.binary.elf import PF_X, PT_LOAD, ElfFile
from clew.binary.frame_tables import frame_rows, pack_rows
from clew.errors import BinaryError, PathCodecError
from clew.probing.probed_process import ProbedProcess
from clew.process.linux import PROT_EXEC
from clew.process.maps import Mapping
from clew.process.unwind_area import UnwindArea, UnwindCode
from clew.sessions.memory import Images

__all__ = ["KnownFrames", "Unwinding"]

_MAX_KEPT_BYTES: Final = 256 << 20
"""Of tables; the ones that were not used for the longest time are made again."""
_LARGE_BYTES: Final = 4 << 20
"""A file with more code is read beside."""

_Key = tuple[int, ...]


class KnownFrames:
    """Tables of files, for all processes of a session."""

    def __init__(self) -> None:
        self._known: OrderedDict[_Key, bytes | None] = OrderedDict()
        self._being_made: set[_Key] = set()
        self._lock = threading.Lock()
        self.n_made = 0
        """How many were made beside."""

    def find(self, elf: ElfFile) -> tuple[_Key, bytes | None]:
        """A file's table, as the runtime reads it, and what that is called; None: it is being made, or there is none
        because the file has too much."""
        # A file's build-id is what the file says of itself.
        status = os.fstat(elf.descriptor)
        key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return key, self._known[key]
            if key in self._being_made:
                return key, None
        code_bytes = sum(one.file_bytes for one in elf.segments if one.kind == PT_LOAD and one.flags & PF_X)
        if code_bytes <= _LARGE_BYTES:
            self._keep(key, _make(elf))
            return key, self._known[key]
        self._being_made.add(key)
        own = ElfFile(elf.path, os.dup(elf.descriptor))
        threading.Thread(target=self._make_beside, args=(key, own), name="clew-frames", daemon=True).start()
        return key, None

    def _make_beside(self, key: _Key, elf: ElfFile) -> None:
        try:
            table = _make(elf)
        finally:
            os.close(elf.descriptor)
        self._keep(key, table)
        self._being_made.discard(key)
        self.n_made += 1

    def _keep(self, key: _Key, table: bytes | None) -> None:
        with self._lock:
            self._known[key] = table
            while len(self._known) > 1 and sum(len(one or b"") for one in self._known.values()) > _MAX_KEPT_BYTES:
                self._known.popitem(last=False)


def _make(elf: ElfFile) -> bytes | None:
    try:
        rows = frame_rows(elf)
    except (BinaryError, PathCodecError):
        return b""
    return None if rows is None else pack_rows(rows)


class Unwinding:
    """Of one process."""

    def __init__(self, process: ProbedProcess, images: Images, known: KnownFrames) -> None:
        self._process, self._images, self._known = process, images, known
        self._area = UnwindArea(process.shared)
        self._code: list[Mapping] | None = None
        self._n_made = 0

    def renew(self, mappings: Sequence[Mapping]) -> None:
        """Have the runtime unwind by the tables of what is mapped now. Raises TargetError."""
        code = [one for one in mappings if one.protection & PROT_EXEC]
        if code == self._code and self._n_made == self._known.n_made:
            return
        if self._code is None:
            self._process.protect_unwinding()
        n_made = self._known.n_made
        self._area.publish([*self._find(code)])
        self._code, self._n_made = code, n_made

    def look_again(self) -> None:
        """Take over what was made beside since, if anything was. Raises TargetError."""
        if self._code is not None:
            self.renew(self._code)

    def _find(self, code: Sequence[Mapping]) -> list[UnwindCode]:
        images = self._images.in_mappings([*code], has_vdso=True)
        found = []
        for image in images:
            elf = self._images.elf(image)
            if elf is not None:
                key, table = self._known.find(elf)
                found.append(UnwindCode(image.start, image.end, image.base, key, table))
        named = {one.start for one in found}
        # Of code that no file has nobody knows more: it is made while the program runs, as a rule.
        found += [UnwindCode(one.start, one.end, 0, None, b"") for one in code if one.start not in named]
        return found
