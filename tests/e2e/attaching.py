"""Runs a program on its own, attaches to it, and looks whether anything of that is left.

Runs on the machine that tests. Does not know the test programs.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.address import Pid
from clew.process.attach import Attachment
from clew.process.attach import attach as attach_runtime
from clew.process.runtime_image import load_runtime_image
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings, SharedFile, SharedMemory
from clew.protocol._constants import Mode, OnFull
from tests.e2e import runs
from tests.e2e.forked import Process

LIMIT_SECONDS = float(os.environ.get("CLEW_TEST_LIMIT", "60"))
A_WHILE_TICKS = 8
_SETTINGS = HeaderSettings(mode=Mode.COUNTS, on_full=OnFull.DROP)


@dataclass(frozen=True)
class Look:
    """What a process shows of itself: nothing of it may differ once it was left."""

    mappings: str
    signals: tuple[str, ...]
    code: tuple[bytes, ...]


class Target:
    """A running program, as `start` gives it."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.pid = process.pid
        self.output = b""

    def read_until(self, text: bytes) -> None:
        """Wait until the program has printed `text`."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + LIMIT_SECONDS
        while text not in self.output:
            assert time.monotonic() < deadline, self.output
            if select.select([self.process.stdout], [], [], 0.1)[0]:
                part = os.read(self.process.stdout.fileno(), 1 << 16)
                assert part, self.output
                self.output += part

    def read_what_is_there(self) -> None:
        """Take what the program has printed so far."""
        assert self.process.stdout is not None
        while select.select([self.process.stdout], [], [], 0)[0]:
            part = os.read(self.process.stdout.fileno(), 1 << 16)
            if not part:
                return
            self.output += part

    def end(self, *, stdin: bytes = b"", number: int = 0) -> tuple[int, str]:
        """Give it input or a signal and wait for its end; its status and all that it printed."""
        if number:
            os.kill(self.pid, number)
        rest, _ = self.process.communicate(stdin, timeout=LIMIT_SECONDS)
        self.output += rest
        return self.process.returncode, self.output.decode()

    def wait_for(self, is_so: Callable[[], bool], *, pause_seconds: float = 0.005) -> None:
        """Wait until something holds that the program is about to do."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not is_so():
            assert time.monotonic() < deadline
            time.sleep(pause_seconds)

    def status(self, name: str) -> str:
        """A line of /proc/PID/status."""
        return next(
            line.partition(":")[2].strip()
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines()
            if line.startswith(name + ":")
        )

    def user_ticks(self) -> int:
        """For how long it ran outside of the kernel, of so many ticks a second as sysconf(_SC_CLK_TCK) says."""
        return user_ticks(self.pid)

    def look(self) -> Look:
        """What it shows now. The process is expected to map nothing meanwhile."""
        mappings = Path(f"/proc/{self.pid}/maps").read_text()
        code = []
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            for start, end in re.findall(r"^([0-9a-f]+)-([0-9a-f]+) r-x.*/", mappings, re.MULTILINE):
                memory.seek(int(start, 16))
                code.append(memory.read(int(end, 16) - int(start, 16)))
        return Look(mappings, tuple(self.status(name) for name in ("SigBlk", "SigIgn", "SigCgt")), tuple(code))

    def has_runtime(self) -> bool:
        """Whether anything of clew's is mapped in it."""
        mappings = Path(f"/proc/{self.pid}/maps").read_text()
        return re.search(r"memfd:clew|^[0-9a-f]+-[0-9a-f]+ rwx|^[1234]a0", mappings, re.MULTILINE) is not None

    def is_attached(self) -> bool:
        """Whether it runs under clew's runtime, and nobody holds it any more."""
        return self.status("TracerPid") == "0" and self.has_runtime() and self.status("TracerPid") == "0"


@contextmanager
def start(*command: str | Path, ready: bytes = b"ready\n", **how: object) -> Iterator[Target]:
    """Start a program and wait until it says that it is ready; it is killed in the end."""
    process = subprocess.Popen(  # type: ignore[call-overload]
        [os.fspath(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **how
    )
    target = Target(process)
    try:
        if ready:
            target.read_until(ready)
        yield target
    finally:
        process.kill()
        process.wait(LIMIT_SECONDS)
        process.stdout.close()
        process.stdin.close()


def user_ticks(pid: int) -> int:
    """As `Target.user_ticks`, of any process."""
    return read_ticks(pid)[0]


def used_ticks(pid: int) -> int:
    """For how long a process and its children that have ended ran at all."""
    return sum(read_ticks(pid))


def read_ticks(pid: int) -> list[int]:
    """For how long a process ran outside of the kernel and in it, and its children that have ended."""
    # proc(5): the name, in parentheses, may hold anything; utime is the 14th field.
    return [int(word) for word in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]]


def is_pending(pid: int, number: int) -> bool:
    """Whether a signal that was sent to a process has not come to it yet."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    return any(line.startswith("ShdPnd:") and int(line.split()[1], 16) >> (number - 1) & 1 for line in lines)


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait until something is so; AssertionError when that takes too long."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, "what was waited for did not come"
        time.sleep(0.005)


def wait_for_a_while_of(pid: int) -> None:
    """Wait until a process, with its children that have ended, has run for a while."""
    before = used_ticks(pid)
    wait_for(lambda: used_ticks(pid) >= before + A_WHILE_TICKS)


def find_descendants(pid: int) -> list[int]:
    """The processes below `pid` now, parents first."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for word in task.read_text().split():
                found += [int(word), *find_descendants(int(word))]
    return found


def nobody_has_runtime(target: Target) -> bool:
    """Whether clew's shared memory is mapped neither in a program nor in any process below it."""
    return not any(has_shared_memory(pid) for pid in [target.pid, *find_descendants(target.pid)])


def has_shared_memory(pid: int) -> bool:
    """Whether clew's shared memory is mapped in a process."""
    try:
        return "memfd:clew" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def attach(pid: int, trace: Path, *options: str, seconds: float | None = 0.3) -> runs.Run:
    """Attach by the command for some time (None: until it ends, or the caller ends it)."""
    duration = [] if seconds is None else ["--duration", str(seconds)]
    return runs.run(runs.clew_command("attach", "-o", trace, *duration, *options, str(pid)))


def attach_while_it_runs(target: Target, trace: Path, *options: str) -> runs.Run:
    """Attach by the command until the program, with its children, has run for a while under the runtime."""
    with attaching(target.pid, trace, *options) as clew:
        target.wait_for(lambda: clew.poll() is not None or target.is_attached())
        wait_for_a_while_of(target.pid)
        status, said = end_attaching(clew)
    return runs.Run(status, b"", said.encode())


@contextmanager
def attaching(pid: int, trace: Path, *options: str, **how: Any) -> Iterator[Process]:
    """`clew attach` at work; it is killed in the end if it has not ended."""
    command = runs.clew_command("attach", "-o", trace, *options, str(pid))
    process = runs.start(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **how)
    try:
        yield process
    finally:
        process.kill()
        process.wait(LIMIT_SECONDS)
        assert process.stderr is not None
        process.stderr.close()


def end_attaching(process: Process, number: int = signal.SIGINT) -> tuple[int, str]:
    """Tell `clew attach` to leave; its status and what it said."""
    process.send_signal(number)
    _, said = process.communicate(timeout=LIMIT_SECONDS)
    return process.returncode, said.decode()


def attach_here(pid: int, is_given_up: Callable[[], bool] = lambda: False) -> Attachment:
    """Attach by this process itself, which drains nothing: what finds no room is dropped."""

    def make_shared(fd: int, layout: SharedLayout, _: object) -> SharedMemory:
        return SharedMemory(SharedFile(layout, fd), _SETTINGS)

    return attach_runtime(Pid(pid), load_runtime_image(), make_shared, is_given_up=is_given_up)
