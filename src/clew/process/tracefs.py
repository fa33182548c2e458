"""Tracepoints at places of files that the kernel makes of uprobes (Documentation/trace/uprobetracer.rst).

Runs in the controller. They are the whole machine's: each clew has a group of its own, named after its process, and
takes away what others have left that are gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from pathlib import Path
from typing import Final

from clew.process.linux import libc, number_of_call

__all__ = ["UprobeTracepoints"]

_MOUNTED: Final = Path("/sys/kernel/tracing")
_GROUP: Final = re.compile(r"^[pr]:(clew_(\d+)/\w+) ", re.MULTILINE)
_CLOSE_ON_EXEC: Final = 1
_CONFIG_CREATE: Final = 6


class UprobeTracepoints:
    """Those of one session. Raises OSError where the kernel makes none, or not for who runs this."""

    _n_groups = 0

    def __init__(self) -> None:
        self._names: list[str] = []
        self._mount = -1
        self._folder = _MOUNTED
        if not (self._folder / "uprobe_events").exists():
            # Nowhere that anybody else sees.
            self._mount = _mount_apart()
            self._folder = Path(f"/proc/self/fd/{self._mount}")
        UprobeTracepoints._n_groups += 1
        self._prefix = f"clew_{os.getpid()}/session{UprobeTracepoints._n_groups}"
        try:
            self._remove_abandoned()
        except BaseException:
            self.close()
            raise

    def make(self, path: str, offset: int, *, is_return: bool) -> int:
        """One at an offset of a file, or where the function that begins there returns; its number. Raises OSError."""
        if re.search(r"\s|:", path):
            raise OSError(0, f"the kernel takes no place in a file of such a name: {path!r}")
        name = f"{self._prefix}_{len(self._names)}"
        self._tell(f"{'r' if is_return else 'p'}:{name} {path}:{offset:#x}")
        self._names.append(name)
        return int((self._folder / "events" / name / "id").read_text())

    def close(self) -> None:
        """Have none any more; nobody is to be met at any."""
        for name in self._names:
            with contextlib.suppress(OSError):
                self._tell(f"-:{name}")
        self._names.clear()
        if self._mount >= 0:
            os.close(self._mount)
            self._mount = -1

    def _remove_abandoned(self) -> None:
        for name, pid in _GROUP.findall((self._folder / "uprobe_events").read_text()):
            if not os.path.exists(f"/proc/{pid}"):
                with contextlib.suppress(OSError):
                    self._tell(f"-:{name}")

    def _tell(self, line: str) -> None:
        # Written anew it would be emptied.
        descriptor = os.open(self._folder / "uprobe_events", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(descriptor, line.encode() + b"\n")
        finally:
            os.close(descriptor)


def _mount_apart() -> int:
    """A descriptor of tracefs, mounted in no folder. Raises OSError."""
    system = _call("fsopen", ctypes.c_char_p(b"tracefs"), ctypes.c_long(_CLOSE_ON_EXEC))
    try:
        nothing = ctypes.c_void_p(None)
        _call("fsconfig", ctypes.c_long(system), ctypes.c_long(_CONFIG_CREATE), nothing, nothing, ctypes.c_long(0))
        return _call("fsmount", ctypes.c_long(system), ctypes.c_long(_CLOSE_ON_EXEC), ctypes.c_long(0))
    finally:
        os.close(system)


def _call(name: str, *arguments: object) -> int:
    result = libc.syscall(ctypes.c_long(number_of_call(name)), *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(result)
