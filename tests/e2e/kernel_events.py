"""The kernel's own events of system calls (`raw_syscalls`, tracefs): number, six arguments, result, by thread.

Runs on the machine that tests. Needs to be root, and a kernel that has them; whoever asks is told why there are none.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["KernelCall", "Recorder", "open_recorder"]

MOUNTED = Path("/sys/kernel/tracing")
BUFFER_KB = 32 << 10
EVENT = re.compile(r"-(\d+) +\[\d+\] .*? sys_(enter|exit): NR (-?\d+) (?:\(([0-9a-f, ]+)\)|= (-?\d+))$")
INTERRUPTED = {-512, -513, -514, -516}
"""What a call that a signal interrupts returns inside of the kernel, which may make it again (linux/errno.h)."""
EINTR = 4


@dataclass
class KernelCall:
    """A system call as the kernel had it; `result` is None if it did not return."""

    number: int
    arguments: tuple[int, ...]
    result: int | None = None


class Recorder:
    """An instance of the kernel's tracing of its own, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "buffer_size_kb").write_text(str(BUFFER_KB))
        # Who is begun by who is looked at is looked at.
        (folder / "options" / "event-fork").write_text("1")

    def run(self, command: Sequence[str], environ: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end; `read` tells of it and its children."""
        (self._folder / "trace").write_text("")
        waiting = ["sh", "-c", 'read line; exec "$@" < /dev/null', "sh", *command]
        how = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(waiting, env=dict(environ), cwd=cwd, **how) as process:  # type: ignore[call-overload]
            (self._folder / "set_event_pid").write_text(str(process.pid))
            self._switch("1")
            try:
                stdout, stderr = process.communicate(b"\n", timeout=300)
            finally:
                self._switch("0")
        return subprocess.CompletedProcess(waiting, process.returncode, stdout, stderr)

    def _switch(self, to: str) -> None:
        (self._folder / "events" / "raw_syscalls" / "enable").write_text(to)

    def read(self) -> dict[int, list[KernelCall]]:
        """The calls of each thread, in their order; AssertionError where the kernel had no room for some."""
        for stats in self._folder.glob("per_cpu/*/stats"):
            assert re.search(r"^overrun: 0$", stats.read_text(), re.MULTILINE), stats.read_text()
        calls: dict[int, list[KernelCall]] = defaultdict(list)
        for line in (self._folder / "trace").read_text(errors="replace").splitlines():
            found = EVENT.search(line)
            if found is None:
                continue
            own, number = calls[int(found[1])], int(found[3])
            if found[2] == "enter":
                own.append(KernelCall(number, tuple(int(word, 16) for word in found[4].split(","))))
            elif own and own[-1].number == number:
                result = int(found[5])
                own[-1].result = -EINTR if result in INTERRUPTED else result
        return calls


@contextmanager
def open_recorder(scratch: Path) -> Iterator[Recorder]:
    """A recorder; the test is skipped where there can be none. `scratch`: a folder to mount things in."""
    root, is_own = MOUNTED, False
    if not (root / "instances").is_dir():
        root = scratch / "tracefs"
        root.mkdir()
        done = subprocess.run(["mount", "-t", "tracefs", "none", root], capture_output=True, check=False)
        if done.returncode:
            pytest.skip(f"no tracefs here: {done.stderr.decode().strip()}")
        is_own = True
    folder = root / "instances" / f"clew-tests-{os.getpid()}"
    try:
        try:
            folder.mkdir()
        except OSError as error:
            pytest.skip(f"no tracing here: {error}")
        try:
            if not (folder / "events" / "raw_syscalls").is_dir():
                pytest.skip("this kernel has no events raw_syscalls")
            yield Recorder(folder)
        finally:
            folder.rmdir()
    finally:
        if is_own:
            subprocess.run(["umount", root], check=True)
            with suppress(OSError):
                root.rmdir()
