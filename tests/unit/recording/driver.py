"""`clew` with an assembler that only notes what it was given: for tests of everything in front of it.

Run as a program: its arguments are clew's. The trace then holds one file, `raw.json`.
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

from clew.cli.main import main
from clew.recording.raw import RawProcess, SessionInfo


def assemble(processes: list[RawProcess], trace_directory: Path, session: SessionInfo) -> None:
    """Note the first process."""
    process = processes[0]
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
            {"tid": thread.tid, "name": thread.name, "lost": thread.lost_records, "total": int(thread.counters.sum())}
            for thread in process.threads
        ],
        "warnings": process.warnings,
        "seconds": (process.end_ns - process.start_ns) / 1e9,
        "cpu": [session.target_cpu_seconds, session.controller_cpu_seconds],
    }
    (trace_directory / "raw.json").write_text(json.dumps(content))


def stub_modules() -> dict[str, types.ModuleType]:
    """Modules to put in the place of the assembler and the summary."""
    modules = {
        name: types.ModuleType(name) for name in ("clew.recording.assemble", "clew.cli.summary", "clew.store.trace")
    }
    modules["clew.recording.assemble"].assemble = assemble  # type: ignore[attr-defined]
    modules["clew.cli.summary"].print_summary = lambda trace: None  # type: ignore[attr-defined]
    modules["clew.store.trace"].Trace = Path  # type: ignore[attr-defined]
    return modules


if __name__ == "__main__":
    sys.modules |= stub_modules()
    sys.exit(main(sys.argv[1:]))
