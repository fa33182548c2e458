"""What is asked of a recording, and how it went.

Runs in the controller.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clew.address import Pid
from clew.dataclass import dataclass, field
from clew.errors import OutputError
from clew.protocol._constants import Mode

if TYPE_CHECKING:
    from clew.recording.sinks.sink import Sink

__all__ = ["RecordOptions", "RecordResult"]


@dataclass(frozen=True)
class RecordOptions:
    """What to record and how. `command` is the program with its arguments, `output` the directory to make.

    `environment` holds `NAME=value` strings; None means this process's own, as Python has it. `pause_seconds` is how
    long the target waits before its first instruction. With `follow` child processes are recorded, too, and the
    programs that processes go on with. With `drop_on_full` what finds no room is counted and left out, otherwise the
    target waits. `budget` is how many bytes of the order may be recorded in a second, in mode full; None: all of them.
    `busy_limit` is the level from which on a thread is busy, in mode region. With
    `adopts_orphans` descendants whose parents end become children of this process, which has none of its own then: so
    they may be traced where only descendants may. `tell` gets lines for people while it goes on. What comes
    of the target goes to the journal in `output`, and then to the other `sinks`.
    """

    command: Sequence[str]
    output: Path
    mode: Mode = Mode.COUNTS
    busy_limit: int = 0
    budget: int | None = None
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    drop_on_full: bool = False
    pause_seconds: float = 0.0
    follow: bool = True
    adopts_orphans: bool = False
    environment: Sequence[bytes] | None = None
    tell: Callable[[str], None] | None = None
    sinks: Sequence[Sink] = ()


@dataclass(frozen=True)
class RecordResult:
    """How it went. `exit_code` or `signal` tells how the target ended; both None: it goes on without clew.

    `statistics` are the runtimes' own numbers, added up. `warnings` are lines for people. `failure` is why there is no
    trace, or None; `kept` then is the folder in which what was recorded waits for `clew recover`, or None: it is lost.
    """

    output: Path
    pid: Pid
    exit_code: int | None
    signal: int | None
    statistics: dict[str, int]
    warnings: list[str] = field(default_factory=list)
    failure: OutputError | None = None
    kept: Path | None = None

    @property
    def exit_status(self) -> int:
        """As a shell tells it: the exit code, 128 + N when signal N ended the target, 143 if the target goes on."""
        if self.signal is not None:
            return 128 + self.signal
        return 128 + signal.SIGTERM if self.exit_code is None else self.exit_code
