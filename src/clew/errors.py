"""Every error clew raises on purpose, in one tree.

Runs in the controller. Knows no terminal: only `clew.cli` prints errors and exits.

    ClewError
    ├── UsageError                 what was asked for cannot be meant (exit status 2)
    │   ├── CommandNotFoundError   no such command
    │   ├── NotExecutableError     the command may not be executed, or is not a program of this machine
    │   ├── OutputExistsError      what is to be written is there already
    │   ├── FilterError            an --include or --exclude that means nothing
    │   ├── CaptureError           an expression that means nothing, or nothing where it is to be taken
    │   └── TransformError         code that a block can't be given, or whose text no assembler understands
    ├── ControlError               a running recording can't do what it is told
    ├── OutputError                a file could not be written: disk full, no permission
    ├── TargetError                something in or about the target failed
    │   ├── LaunchError            the target could not be started or stopped
    │   ├── AttachError            a running process can't be attached to, or not be left
    │   ├── InjectionError         the runtime could not be put into the target
    │   ├── TargetGoneError        the target ended while it was worked on
    │   │   └── KilledAtStartError the kernel killed it while it was executed (exit status 128 + the signal)
    │   ├── StuckError             the target does not come out of the kernel
    │   └── RemoteCallError        a system call made in the target failed
    ├── RuntimeImageError          the runtime's image is missing, damaged or of another version
    ├── ViewerError                the viewer's page is missing
    ├── PathCodecError             the path codec's library is missing, damaged or lacks a function
    ├── ProtocolError              shared memory or a record says what cannot be
    ├── SchemaError                protocol/schema.toml breaks its own rules
    ├── TraceError                 a trace cannot be used
    │   ├── NotATraceError         it is no trace at all (exit status 2)
    │   ├── TraceDamagedError      it is damaged or truncated
    │   ├── TraceVersionError      a newer clew wrote it
    │   └── TraceUnfinishedError   it is being written, or its recording was cut off
    └── BinaryError                an ELF file or its debugging information cannot be read
"""

from __future__ import annotations

import errno as errno_module
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "AttachError",
    "BinaryError",
    "CaptureError",
    "ClewError",
    "CommandNotFoundError",
    "ControlError",
    "FilterError",
    "InjectionError",
    "KilledAtStartError",
    "LaunchError",
    "NotATraceError",
    "NotExecutableError",
    "OutputError",
    "OutputExistsError",
    "PathCodecError",
    "ProtocolError",
    "RemoteCallError",
    "RuntimeImageError",
    "SchemaError",
    "StuckError",
    "TargetError",
    "TargetGoneError",
    "TraceDamagedError",
    "TraceError",
    "TraceUnfinishedError",
    "TraceVersionError",
    "TransformError",
    "UsageError",
    "ViewerError",
]


class ClewError(Exception):
    """Base of all errors of clew.

    `message` is one lower-case line that names the thing and, where there is one, the way out.
    `exit_status` is what the command line exits with: 2 for usage, 1 for everything else.
    """

    exit_status = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UsageError(ClewError):
    """What was asked for cannot be meant."""

    exit_status = 2


class CommandNotFoundError(UsageError):
    """There is no such command. `command` is what was asked for."""

    def __init__(self, command: str, message: str | None = None) -> None:
        super().__init__(message or f"{command}: no such command; give a path, or a name found in PATH")
        self.command = command


class NotExecutableError(UsageError):
    """`path` cannot be executed, or not followed here; `reason` says why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class OutputExistsError(UsageError):
    """What is to be written to `path` is there already; `way_out` begins with a verb."""

    def __init__(self, path: Path, way_out: str = "remove it, or choose another name") -> None:
        super().__init__(f"{path}: exists already; {way_out}")
        self.path = path


class CaptureError(UsageError):
    """An expression means nothing, or nothing at the place where it is to be taken; says where in it."""


class TransformError(UsageError):
    """Code that a block can't be given, or that is no code; says of which block and instruction."""


class FilterError(UsageError):
    """`what`, given to --include or --exclude, is no filter; `reason` says why."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"filter {what!r}: {reason}")
        self.what = what
        self.reason = reason


class ControlError(ClewError):
    """A running recording can't do what it is told, or can't be told."""


class OutputError(ClewError):
    """`path` could not be written. `errno` is the operating system's number, or 0."""

    def __init__(self, path: Path, reason: str, errno: int = 0) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
        self.errno = errno

    @classmethod
    def from_os_error(cls, path: Path, error: OSError) -> OutputError:
        """The same failure, told with `path` and, for a full disk, with the way out."""
        reason = error.strerror or str(error)
        if error.errno in (errno_module.ENOSPC, errno_module.EDQUOT):
            reason = "the disk is full; free some space, or choose another place with -o"
        elif error.errno in (errno_module.EACCES, errno_module.EPERM, errno_module.EROFS):
            reason = "the directory is not writable; choose another place with -o"
        return cls(path, reason, error.errno or 0)


class TargetError(ClewError):
    """Something in or about the target failed. `pid` is its process id."""

    def __init__(self, pid: int, message: str) -> None:
        super().__init__(message)
        self.pid = pid


class LaunchError(TargetError):
    """The target could not be started or stopped."""


class AttachError(TargetError):
    """A running process can't be attached to, or not be left."""


class InjectionError(TargetError):
    """The runtime could not be put into the target."""


class TargetGoneError(TargetError):
    """The target ended while it was worked on. `wait_status` is what waitpid said, or None."""

    def __init__(self, pid: int, message: str, wait_status: int | None = None) -> None:
        super().__init__(pid, message)
        self.wait_status = wait_status


class KilledAtStartError(TargetGoneError):
    """Signal `signal` ended the target before its first instruction, which is what natively would have been seen."""

    def __init__(self, pid: int, message: str, signal: int) -> None:
        super().__init__(pid, message, signal)
        self.signal = signal
        self.exit_status = 128 + signal


class StuckError(TargetError):
    """The target waits in the kernel, for longer than clew waits for it."""


class RemoteCallError(TargetError):
    """System call `name`, made in the target, failed with `errno`."""

    def __init__(self, pid: int, name: str, errno: int) -> None:
        super().__init__(pid, f"process {pid}: {name} failed in the target: {os.strerror(errno)}")
        self.name = name
        self.errno = errno


class RuntimeImageError(ClewError):
    """The runtime's image at `path` cannot be used; `reason` says why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"runtime image {path}: {reason}")
        self.path = path
        self.reason = reason


class PathCodecError(ClewError):
    """The path codec's library at `path` cannot be used; `reason` says why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"path codec {path}: {reason}")
        self.path = path
        self.reason = reason


class ViewerError(ClewError):
    """The viewer's page at `path` cannot be shown; `reason` says why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class ProtocolError(ClewError):
    """Shared memory or a record says what cannot be."""


class SchemaError(ClewError):
    """protocol/schema.toml breaks its own rules."""


class TraceError(ClewError):
    """The trace at `path` cannot be used; `reason` says why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class NotATraceError(TraceError):
    """`path` is no trace at all."""

    exit_status = 2


class TraceDamagedError(TraceError):
    """The trace is damaged or truncated."""


class TraceVersionError(TraceError):
    """A newer clew wrote the trace."""


class TraceUnfinishedError(TraceError):
    """The trace is being written, or its recording was cut off."""


class BinaryError(ClewError):
    """The ELF file at `path`, or its debugging information, cannot be read; `reason` says why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
