"""What is asked of a recording, whatever it is of; and how it went.

Runs in the controller. What people wrote is parsed here once, for the command line and for Python alike.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clew.address import Pid
from clew.dataclass import dataclass, field
from clew.errors import OutputError
from clew.process.shared_memory import RELAYOUT_EXECUTIONS, read_relayout_executions
from clew.protocol._constants import Mode
from clew.recording.options.arguments import parse_budget, parse_busy_limit, parse_mode, parse_patterns
from clew.recording.options.filters import Filter, parse_filters

if TYPE_CHECKING:
    from clew.recording.sinks.sink import Sink

__all__ = ["RecordOptions", "RecordResult", "parse_options"]


@dataclass(frozen=True)
class RecordOptions:
    """What to record and how. `output` is the directory to make.

    With `follow` child processes are recorded, too, and the programs that processes go on with. With `drop_on_full`
    what finds no room is counted and left out, otherwise the target waits. `budget` is how many bytes of the order may
    be recorded in a second, in mode full; None: all of them. `busy_limit` is the level from which on a thread is busy,
    in mode region. Code that ran `relayout_executions` times is laid out anew. `tell` gets lines for people while it
    goes on. What comes of the target goes to the journal in `output`, and then to the other `sinks`. `told_command`
    makes of a command line, or of a thread's name as its only word, what is written of it; None: all.
    """

    output: Path
    mode: Mode = Mode.COUNTS
    busy_limit: int = 0
    budget: int | None = None
    include: Sequence[Filter] = ()
    exclude: Sequence[Filter] = ()
    drop_on_full: bool = False
    follow: bool = True
    relayout_executions: int = RELAYOUT_EXECUTIONS
    tell: Callable[[str], None] | None = None
    sinks: Sequence[Sink] = ()
    told_command: Callable[[Sequence[str]], list[str]] | None = None

    def told(self, command: Sequence[str]) -> list[str]:
        """What is written of a command line."""
        return list(command) if self.told_command is None else self.told_command(command)


def parse_options(
    output: Path,
    *,
    mode: str = "counts",
    busy_limit: int | None = None,
    budget: float | None = None,
    include: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    drop_on_full: bool = False,
    follow: bool = True,
    tell: Callable[[str], None] | None = None,
) -> RecordOptions:
    """The options of a recording as people give them: a mode by its name, the budget in MB a second, filters as text.

    Raises UsageError, FilterError.
    """
    recorder = parse_mode(mode)
    return RecordOptions(
        output=output,
        mode=recorder,
        busy_limit=parse_busy_limit(busy_limit, recorder),
        budget=parse_budget(budget, mode),
        include=parse_filters(parse_patterns(include)),
        exclude=parse_filters(parse_patterns(exclude)),
        drop_on_full=drop_on_full,
        follow=follow,
        relayout_executions=read_relayout_executions(),
        tell=tell,
    )


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
