"""What a run of the tests leaves behind: processes that still run, files and folders beyond pytest's own.

A plugin of pytest, which works in the process that was started as such; does not know the tests.

All that a run starts, however often it forks, whoever adopts it and whatever environment it is given, inherits the
limits of resources. One of them, which nothing here asks for, is lowered to a number that is this run's alone. And what
Python or a compiler makes in the temporary folder comes into one of the run's own; test programs, which know of none,
name what they make after themselves.
"""

from __future__ import annotations

import os
import re
import resource
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from tests.programs.build import catalogue

LIMIT_SECONDS = float(os.environ.get("CLEW_LEFT_SECONDS", "20"))
"""For how long it is waited that what has been told to end has ended."""

IS_ALONE = os.environ.get("CLEW_LEFT_ALONE") == "1"
"""Whatever comes into folders that all share is this run's, even if clew runs beside it."""

_FEWEST_MARKS = 1024
_MARK = re.compile(r"^Max msgqueue size\s+(\d+)\s", re.MULTILINE)
_OWN = "clew-suite-"
_MADE_BY_PROGRAM = re.compile(r"(\w+)\.\w{6}")
"""A test program's name, and what mkdtemp(3) puts behind it."""
_CONTROL_SOCKET = re.compile(r"(\d+)(?:\.socket|-\d+\.probes)")

Found = TypeVar("Found", dict[int, str], list[Path])


class TestRun:
    """A run of the tests, from its start to its end. `mark` is 0 where processes can't be told apart from others."""

    __test__ = False

    def __init__(self) -> None:
        self._limits = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
        most = self._limits[1] if self._limits[1] != resource.RLIM_INFINITY else 1 << 40
        self.mark = most - secrets.randbelow(most // 2) if most >= _FEWEST_MARKS else 0
        if self.mark:
            resource.setrlimit(resource.RLIMIT_MSGQUEUE, (self.mark, self._limits[1]))
        self._shared = Path(tempfile.gettempdir())
        self._variables = {name: os.environ.get(name) for name in ("TMPDIR", "PYTEST_DEBUG_TEMPROOT")}
        self.folder = Path(tempfile.mkdtemp(prefix=_OWN))
        # Where pytest's own folders are stays where it was.
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(self._shared))
        os.environ["TMPDIR"] = str(self.folder)
        tempfile.tempdir = None
        self._before = set(self._iter_shared())

    def find_processes(self) -> dict[int, str]:
        """The processes that this run has started and that still run: numbers, and command lines."""
        found = {}
        for name in os.listdir("/proc") if self.mark else ():
            if name.isdigit() and int(name) != os.getpid():
                with suppress(OSError):
                    mark = _MARK.search(Path(f"/proc/{name}/limits").read_text())
                    if mark is not None and int(mark[1]) == self.mark and not _is_dead(int(name)):
                        words = Path(f"/proc/{name}/cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ")
                        found[int(name)] = words.decode(errors="backslashreplace") or "(no command line)"
        return found

    def find_others(self) -> list[int]:
        """Processes of clew, or other runs of tests, that this run has nothing to do with."""
        ours, above = self.find_processes(), set(_iter_parents(os.getpid()))
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid() and int(name) not in ours and int(name) not in above:
                with suppress(OSError):
                    words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")[:4]
                    if any(Path(os.fsdecode(word)).name in ("clew", "pytest") for word in words):
                        found.append(int(name))
        return found

    def find_files(self) -> list[Path]:
        """What lies in folders that all share, and was not there before."""
        ours = self.find_processes()
        found = []
        own = self.folder.iterdir() if self.folder.is_dir() else ()
        for path in [*(set(self._iter_shared()) - self._before), *own]:
            socket = _CONTROL_SOCKET.fullmatch(path.name)
            if socket is None or int(socket[1]) in ours:
                found.append(path)
            elif _is_dead(int(socket[1])):
                # Of a recording that a test has killed: clew itself takes it away the next time that it looks for one.
                path.unlink(missing_ok=True)
        return sorted(found)

    def finish(self, limit_seconds: float = LIMIT_SECONDS) -> list[str]:
        """One line for each process and file that is left after a while; the processes are ended then."""
        deadline = time.monotonic() + limit_seconds
        processes = wait_for_none(self.find_processes, deadline)
        told = [f"process {pid} still runs: {words[:200]}" for pid, words in sorted(processes.items())]
        for pid in processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        files = wait_for_none(self.find_files, deadline)
        if others := self.find_others() if not IS_ALONE else []:
            # What lies in folders that all share may be theirs.
            theirs = [path for path in files if self.folder not in path.parents]
            sys.stderr.write("".join(f"{path}: of this run, or of process {others[0]}\n" for path in theirs))
            files = [path for path in files if path not in theirs]
        told += [f"left behind: {path}" for path in files]
        shutil.rmtree(self.folder, ignore_errors=True)
        resource.setrlimit(resource.RLIMIT_MSGQUEUE, self._limits)
        for name, value in self._variables.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        tempfile.tempdir = None
        return told

    def _iter_shared(self) -> Iterator[Path]:
        """What may be of tests in folders that others use at the same time."""
        own = f"clew-{os.geteuid()}"
        programs = {program.name.partition(".")[0] for program in catalogue()}
        runtime_folder = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}")
        for folder in {self._shared, Path("/tmp"), Path("/dev/shm"), runtime_folder}:
            with suppress(OSError):
                for path in folder.iterdir():
                    made = _MADE_BY_PROGRAM.fullmatch(path.name)
                    is_known = path.name.startswith("clew") or (made is not None and made[1] in programs)
                    if is_known and path.name not in ("clew", own) and not path.name.startswith(_OWN):
                        yield path
        for folder in (Path("/tmp") / own, runtime_folder / "clew"):
            with suppress(OSError):
                yield from folder.iterdir()


def _iter_parents(pid: int) -> Iterator[int]:
    """The processes above one."""
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return
        yield pid


def _is_dead(pid: int) -> bool:
    """Whether there is no such process, or nothing of it but its status."""
    try:
        # proc(5): the name, in parentheses, may hold anything; the state comes behind it.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def wait_for_none(find: Callable[[], Found], deadline: float) -> Found:
    """What is found at the deadline, or nothing."""
    while (found := find()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


_TEST_RUN = pytest.StashKey[TestRun]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin a run, unless this process is one of xdist's: those are of the run that starts them."""
    # Behind `nohup` or as a background job of a script it would be ignored, and by all that tests start.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    if not hasattr(config, "workerinput"):
        config.stash[_TEST_RUN] = TestRun()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Tell of what is left, and fail then: all else has ended, the fixtures and the processes of xdist."""
    yield
    if _TEST_RUN not in session.config.stash:
        return
    left = session.config.stash[_TEST_RUN].finish()
    if left and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    for line in left:
        sys.stderr.write(f"ERROR: {line}\n")
