"""Which file a command means, and whether it can be followed: a look before anything is started.

Runs in the controller. Reads the first bytes of files only; nothing is executed here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import Final

from clew.binary.architectures.known import KNOWN, native_architecture
from clew.binary.machines import name_machine
from clew.dataclass import dataclass
from clew.errors import CommandNotFoundError, NotExecutableError
from clew.process.identity import read_status
from clew.process.privileges import explain_privileges, has_ptrace_capability

__all__ = [
    "MAX_INTERPRETERS",
    "SCRIPT_LINE_BYTES",
    "Program",
    "find_program",
    "is_for_32_bits",
    "script_interpreter",
]

MAX_INTERPRETERS: Final = 5
SCRIPT_LINE_BYTES: Final = 256


@dataclass(frozen=True)
class Program:
    """What will be executed: `path` is the file, `interpreter` the ELF program that runs it if it is a script."""

    path: str
    interpreter: str | None


def find_program(command: str, environment: Mapping[str, str] | None = None) -> Program:
    """Find what executing `command` would run, as execvp does.

    Raises CommandNotFoundError, or NotExecutableError with the reason, if it could not be run or not be followed.
    """
    path = _search(command, os.environ if environment is None else environment)
    interpreter = None
    current = path
    for _ in range(MAX_INTERPRETERS):
        head = _read_head(path, current)
        if not head.startswith(b"#!"):
            _check_elf(path, current, head)
            _check_privileges(path, current)
            return Program(path, interpreter)
        interpreter = _find_interpreter(path, head)
        current = interpreter
    raise NotExecutableError(path, "its interpreters are scripts of scripts, more than the system follows")


def _search(command: str, environment: Mapping[str, str]) -> str:
    if command == "" or "\0" in command:
        raise CommandNotFoundError(command, "empty command: give a program to record")
    if "/" in command:
        if not os.path.exists(command):
            raise CommandNotFoundError(command, f"{command}: no such file")
        _check_executable(command, command)
        return command
    refused = None
    for directory in environment.get("PATH", os.defpath).split(":"):
        candidate = os.path.join(directory or ".", command)
        if not os.path.isfile(candidate):
            continue
        if os.access(candidate, os.X_OK, effective_ids=True):
            return candidate
        refused = refused or candidate
    if refused is not None:
        raise NotExecutableError(refused, f"not executable; chmod +x {refused}")
    here = f"; did you mean ./{command}?" if os.path.isfile(command) else ""
    raise CommandNotFoundError(command, f"{command}: no such command in PATH{here}")


def _check_executable(path: str, current: str) -> None:
    of_script = "" if path == current else f"its interpreter {current} is "
    if os.path.isdir(current):
        raise NotExecutableError(path, f"{of_script}a directory, not a program")
    if not os.access(current, os.X_OK, effective_ids=True):
        raise NotExecutableError(path, f"{of_script}not executable; chmod +x {current}")


def _read_head(path: str, current: str) -> bytes:
    try:
        # Not to wait for a pipe that came in the file's place.
        fd = os.open(current, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise NotExecutableError(path, "not a regular file")
            return os.read(fd, SCRIPT_LINE_BYTES)
        finally:
            os.close(fd)
    except PermissionError as error:
        reason = "may be executed but not read, and what can't be read can't be followed; run clew as root"
        raise NotExecutableError(path, reason) from error
    except OSError as error:
        raise NotExecutableError(path, f"can't be read: {error.strerror}") from error


def script_interpreter(head: bytes) -> bytes | None:
    """The interpreter that the first bytes of a file name, if it is a script; it may be empty."""
    if not head.startswith(b"#!"):
        return None
    words = head[2:].split(b"\n", 1)[0].strip(b" \t").split(None, 1)
    return words[0] if words else b""


def is_for_32_bits(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a 32-bit program that this machine may execute."""
    return native_architecture().is_for_other_width(head)


def _find_interpreter(path: str, head: bytes) -> str:
    interpreter = os.fsdecode(script_interpreter(head) or b"")
    if not interpreter:
        raise NotExecutableError(path, "a script whose #! line names no interpreter")
    if not os.path.exists(interpreter):
        raise NotExecutableError(path, f"its interpreter {interpreter} does not exist")
    _check_executable(path, interpreter)
    return interpreter


def _check_elf(path: str, current: str, head: bytes) -> None:
    subject = "" if path == current else f"its interpreter {current} is "
    if not head.startswith(b"\x7fELF"):
        raise NotExecutableError(path, f"{subject}neither an ELF program nor a script that begins with #!")
    if len(head) < 64:
        raise NotExecutableError(path, f"{subject}a truncated ELF file")
    file_class, data, machine = head[4], head[5], int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    architecture = native_architecture()
    if machine != architecture.machine or data != 1:
        # Of its own machine one that is big-endian.
        name = name_machine(machine) if machine != architecture.machine else f"ELF machine {machine}"
        followed = architecture.title if architecture.machine >= 0 else " and ".join(one.title for one in KNOWN)
        raise NotExecutableError(path, f"{subject}a program for {name}; clew follows {followed} programs here")
    if file_class != 2:
        width = architecture.other_width
        raise NotExecutableError(path, f"{subject}a {width} program; clew follows 64-bit programs")
    if int.from_bytes(head[16:18], "little") not in (2, 3):
        raise NotExecutableError(path, f"{subject}an ELF file, but no program (an object file or a core dump)")


def _check_privileges(path: str, current: str) -> None:
    """Refuse what would run without its privileges because it is traced.

    The set-uid bit of a script has no effect; that of its interpreter would.
    """
    if has_ptrace_capability():
        return
    fd = os.open(current, os.O_PATH | os.O_CLOEXEC)
    try:
        what = explain_privileges(read_status("self") or {}, fd)
    finally:
        os.close(fd)
    if what:
        raise NotExecutableError(
            path, f"{what}: the kernel takes its privileges away while it is traced; run clew as root to follow it"
        )
