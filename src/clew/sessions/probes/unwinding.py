"""The tables by which threads unwind their own stacks at probes: made of files, once each, and given to processes.

Runs in the controller. A table is about as large as the file's .eh_frame, and takes ten milliseconds for each five MiB
of that. Very large ones are made beside, in a thread, and so are others where many are to be made at once; until then
the runtime asks what is behind frames of these files.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from queue import SimpleQueue
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
_LARGE_BYTES: Final = 128 << 20
"""A file with more code is read beside."""
_IN_TIME_SECONDS: Final = 0.25
"""So long tables are made at once, whenever something is loaded; then others are made beside."""

_Key = tuple[int, ...]


class KnownFrames:
    """Tables of files, for all processes of a session."""

    def __init__(self) -> None:
        self._known: OrderedDict[_Key, bytes | None] = OrderedDict()
        self.begin_anew()
        self.n_made = 0
        """How many were made beside."""

    def begin_anew(self) -> None:
        """This is a fork's copy, which has no thread that makes any."""
        self._being_made: set[_Key] = set()
        self._waiting: SimpleQueue[tuple[_Key, ElfFile]] = SimpleQueue()
        self._lock = threading.Lock()

    def find(self, elf: ElfFile, *, in_time: bool = True) -> tuple[_Key, bytes | None]:
        """A file's table, as the runtime reads it, and what that is called; None: it is being made, as large ones are,
        or all that are asked for too late, or there is none because the file has too much."""
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
        if in_time and code_bytes <= _LARGE_BYTES:
            table = _make(elf)
            self._keep(key, table)
            return key, table
        is_first = not self._being_made
        self._being_made.add(key)
        self._waiting.put((key, ElfFile(elf.path, os.dup(elf.descriptor))))
        if is_first:
            threading.Thread(target=self._make_beside, name="clew-frames", daemon=True).start()
        return key, None

    def _make_beside(self) -> None:
        while True:
            key, elf = self._waiting.get()
            try:
                table = _make(elf)
            finally:
                os.close(elf.descriptor)
            self._keep(key, table)
            with self._lock:
                self._being_made.discard(key)
                self.n_made += 1
                if not self._being_made:
                    return

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
        seconds = 0.0
        # The small ones first: all of these are there in time.
        for image in sorted(images, key=lambda one: one.end - one.start):
            elf = self._images.elf(image)
            if elf is not None:
                begun = time.monotonic()
                key, table = self._known.find(elf, in_time=seconds < _IN_TIME_SECONDS)
                seconds += time.monotonic() - begun
                found.append(UnwindCode(image.start, image.end, image.base, key, table))
        named = {one.start for one in found}
        # Of code that no file has nobody knows more: it is made while the program runs, as a rule.
        found += [UnwindCode(one.start, one.end, 0, None, b"") for one in code if one.start not in named]
        return found
