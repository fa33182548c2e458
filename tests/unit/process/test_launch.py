"""Starting what does not become a program."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from pathlib import Path

import pytest

from clew.errors import KilledAtStartError, StuckError
from clew.process import launch
from clew.process.launch import launch_stopped
from clew.process.program import Program, find_program


@pytest.mark.timeout(20)
def test_a_program_that_the_kernel_kills_while_it_executes_it(tmp_path: Path) -> None:
    program = tmp_path / "cut"
    program.write_bytes(Path(find_program("true").path).read_bytes()[:4096])
    program.chmod(0o755)
    native = os.posix_spawn(program, [os.fspath(program)], {})
    assert os.WTERMSIG(os.waitpid(native, 0)[1]) == signal.SIGSEGV
    with pytest.raises(KilledAtStartError, match="ended by SIGSEGV while the kernel executed it") as raised:
        launch_stopped(find_program(str(program)), [b"cut"], [])
    assert (raised.value.signal, raised.value.exit_status) == (signal.SIGSEGV, 128 + signal.SIGSEGV)


@pytest.mark.timeout(20)
def test_an_execution_that_does_not_return_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "GIVING_UP_SECONDS", 0.05)
    program = tmp_path / "true"
    program.write_bytes(Path(find_program("true").path).read_bytes())
    program.chmod(0o755)
    # Who executes it waits until this process gives up its lease (fcntl(2)), of which a signal tells it.
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    fd = os.open(program, os.O_RDWR)
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        started = time.monotonic()
        with pytest.raises(StuckError, match=r"was not executed: process \d+: let go, as told") as raised:
            launch_stopped(Program(str(program), None), [b"true"], [], is_given_up=lambda: True)
        assert time.monotonic() - started < 10
        with pytest.raises(ChildProcessError):
            os.waitpid(raised.value.pid, os.WNOHANG)
    finally:
        os.close(fd)
        signal.signal(signal.SIGIO, before)
