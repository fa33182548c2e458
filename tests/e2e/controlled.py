"""Records a program and controls it meanwhile, as somebody at a terminal would.

Runs on the machine that tests.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from clew.address import Pid
from clew.errors import ControlError
from clew.recording.control.client import ControlClient
from tests.e2e import runs
from tests.e2e.attaching import LIMIT_SECONDS, Target, find_descendants, wait_for
from tests.e2e.forked import Process

__all__ = ["Controlled", "controlled"]


class Controlled(Target):
    """A recorded program; `target_pid` is its own number, `trace` where it is recorded."""

    def __init__(self, process: Process, trace: Path) -> None:
        super().__init__(process)
        self.trace = trace
        self.target_pid = 0

    def tell(self, line: str) -> None:
        """Write a line to the program."""
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def do(self, command: str, **how: Any) -> dict[str, Any]:
        """Control it as `clew control` does; the process's part of the answer, or all of an answer without."""
        answer = ControlClient.find(Pid(self.target_pid)).do(command, **how)
        return next((one for one in answer.get("processes", []) if one["pid"] == self.target_pid), answer)

    def wait_until_it_reads(self) -> None:
        """Wait until the first thread waits for a line, which is a moment after it has printed the last one."""
        # proc(5): the number of the call that a thread is blocked in comes first.
        where = Path(f"/proc/{self.target_pid}/task/{self.target_pid}/syscall")
        wait_for(lambda: where.read_text().startswith("0 "))

    def pause_while_it_reads(self) -> dict[str, Any]:
        """Have its threads stop, all but the first one, which waits for a line."""
        self.wait_until_it_reads()
        return self.do("pause")

    def is_controlled(self) -> bool:
        """Whether its recording listens."""
        with suppress(ControlError):
            return ControlClient.find(Pid(self.target_pid)).pid == self.target_pid
        return False

    def stopped(self) -> dict[int, dict[str, Any]]:
        """The threads that are stopped, by their numbers."""
        return {thread["tid"]: thread for thread in self.do("status")["threads"]}

    def wait_for_stop(self, reason: str) -> dict[str, Any]:
        """Wait until a thread is stopped for this reason, and all others that run are, too; that thread."""

        def is_stopped() -> bool:
            status = self.do("status")
            reasons = [thread["reason"] for thread in status["threads"]]
            return reason in reasons and all(one["system_call"] is not None for one in status["elsewhere"])

        wait_for(is_stopped)
        return next(thread for thread in self.stopped().values() if thread["reason"] == reason)

    def stop_at(self, place: str, line: str) -> dict[str, Any]:
        """Tell the program a line that leads to `place`, and have a thread stop there, once; that thread."""
        self.do("break", place=place)
        self.tell(line)
        thread = self.wait_for_stop("breakpoint")
        self.do("delete", place=place)
        return thread

    def finish(self) -> tuple[int, str, str]:
        """End its input, wait for its end: status, output, and what clew said."""
        rest, said = self.process.communicate(timeout=LIMIT_SECONDS)
        return self.process.returncode, (self.output + rest).decode(), said.decode()


@contextmanager
def controlled(
    program: Path, trace: Path, *options: str, arguments: Sequence[str] = (), fixed_layout: bool = False
) -> Iterator[Controlled]:
    """Record `program` until it is ready to be controlled; clew and all below it are ended in the end."""
    words = runs.clew_command("record", "-q", "-o", trace, *options, "--", program, *arguments)
    command = [*(runs.FIXED_LAYOUT if fixed_layout else ()), *words]
    process = runs.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    target = Controlled(process, trace)
    try:
        if "--pause" not in options:
            target.read_until(b"ready\n")
        wait_for(lambda: bool(find_descendants(process.pid)))
        target.target_pid = find_descendants(process.pid)[0]
        wait_for(target.is_controlled)
        yield target
    finally:
        for pid in find_descendants(process.pid) if process.poll() is None else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.kill()
        process.wait(LIMIT_SECONDS)
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def control(pid: int, *words: str) -> runs.Run:
    """`clew control`."""
    return runs.run(runs.clew_command("control", str(pid), *words))


def control_json(pid: int, *words: str) -> dict[str, Any]:
    """What `clew control --json` prints."""
    run = control(pid, *words, "--json")
    assert run.status == 0, run.stderr
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer
