"""`clew` with an assembler that only notes what it was given: for tests of everything in front of it.

Run as a program: its arguments are clew's. The trace then holds one file, `raw.json`. With SIGNAL_AT in the
environment, `STAGE NUMBER`, its process group is sent a signal at a certain stage of its start; with SIGNAL_ALONE, only
itself.
"""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import clew.process.launch
import clew.process.ptrace
import clew.process.stopped_process
import clew.recording.following.entering
import clew.recording.session.interrupts
from clew.cli.main import main
from clew.recording.raw.process import RawProcess, SessionInfo


def assemble(processes: Iterable[RawProcess], trace_directory: Path, session: SessionInfo) -> None:
    """Note the first process."""
    process = next(iter(processes))
    numbers = process.records[1:, 16:24].copy().view("<u8").ravel()
    content = {
        "pid": process.pid,
        "executable": process.executable,
        "command": process.command,
        "exit_code": process.exit_code,
        "signal": process.signal,
        "mode": process.mode.name,
        "images": [image.path for image in process.initial_images],
        "records": len(process.records),
        "in_order": bool((numbers == range(len(numbers))).all()) if len(numbers) else True,
        "threads": [
            {
                "tid": thread.tid,
                "name": thread.name,
                "lost": thread.lost_records,
                "total": int(thread.counters.value.sum()),
            }
            for thread in process.threads
        ],
        "warnings": [*process.warnings, *session.warnings],
        "seconds": (process.end_ns - process.start_ns) / 1e9,
        "cpu": [session.target_cpu_seconds, session.controller_cpu_seconds],
    }
    (trace_directory / "raw.json").write_text(json.dumps(content))


def stub_modules() -> dict[str, types.ModuleType]:
    """Modules to put in the place of the assembler and the summary."""
    modules = {
        name: types.ModuleType(name)
        for name in ("clew.recording.assembly.trace", "clew.cli.summary", "clew.store.trace")
    }
    modules["clew.recording.assembly.trace"].assemble = assemble  # type: ignore[attr-defined]
    modules["clew.cli.summary"].print_summary = lambda trace: None  # type: ignore[attr-defined]
    modules["clew.store.trace"].Trace = Path  # type: ignore[attr-defined]
    return modules


STAGES = {
    "before the fork": (clew.process.launch, "string_array"),
    "before the tracer": (clew.process.ptrace, "seize"),
    "before execve": (clew.process.launch, "_wait_for_exec"),
    "after execve": (clew.process.stopped_process.StoppedProcess, "run_to_syscall_stop"),
    "before injection": (clew.recording.following.entering, "inject"),
    "before leaving": (clew.process.ptrace, "detach"),
    "after leaving": (clew.recording.session.interrupts.InterruptGuard, "follow"),
}
"""What is called just after each."""


def signal_at(stage: str, number: int, *, is_alone: bool) -> None:
    """Have a signal sent when `stage` is reached first."""
    place: Any
    place, name = STAGES[stage]
    original: Callable[..., Any] = getattr(place, name)

    def send_and_go_on(*arguments: Any, **options: Any) -> Any:
        setattr(place, name, original)
        if is_alone:
            os.kill(os.getpid(), number)
        else:
            os.killpg(0, number)
        return original(*arguments, **options)

    setattr(place, name, send_and_go_on)


if __name__ == "__main__":
    if "SIGNAL_AT" in os.environ:
        wanted, _, number_text = os.environ["SIGNAL_AT"].rpartition(" ")
        signal_at(wanted, int(number_text), is_alone="SIGNAL_ALONE" in os.environ)
    sys.modules |= stub_modules()
    sys.exit(main(sys.argv[1:]))
