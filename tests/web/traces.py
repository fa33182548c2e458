"""The traces that the viewer's tests look at: recorded ones and made up ones, made once and kept in build/web-fixtures.

Runs on the machine that tests. Each is in a folder named after a hash of all that it is made with, so that a change of
the recorder or of the maker makes it anew; several test processes may ask at the same time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.e2e.runs import ROOT, clew_command, record, run
from tests.programs.build import build_one, find
from tests.web.made_up_trace import write_made_up_trace

__all__ = ["HOSTILE_NAMES", "HOSTILE_TITLE", "find_trace"]

FOLDER: Final = ROOT / "build/web-fixtures"
_HERE: Final = Path(__file__).resolve().parent
_SHAPES: Final = _HERE / "programs/shapes.c"
_COMPARED: Final = _HERE / "programs/compared.c"
_LOSSES: Final = _HERE / "programs/losses.c"
_CALLS: Final = _HERE / "programs/calls.c"
_PIPELINE: Final = _HERE / "programs/pipeline.sh"
_THINNED: Final = "branches_random.static"
_RECORDER: Final = tuple(ROOT / "src/clew" / part for part in ("process", "protocol", "recording", "store", "_runtime"))
_API: Final = (*_RECORDER, *(ROOT / "src/clew" / part for part in ("api", "sessions", "capture")), _CALLS)
_MAKER: Final = (
    *(_HERE / f"made_up_{name}.py" for name in ("program", "trace", "calls")),
    ROOT / "src/clew/store",
)

HOSTILE_NAMES: Final = (
    "main",
    "<img src=x onerror=alert(1)>",
    "<script>alert(2)</script>",
    '"><svg onload=alert(3)>',
    "javascript:alert(4)",
    "\u202egpj.exe\u2066 right to left",
    "two\nlines\r\n",
    "with\0nul",
    "\x1b[31mred\x07",
    "long_" + 3_000 * "x",
    "__proto__",
    "constructor",
    "",
    "\ufeff\u200b\u00ad",
    "{{7*7}}${7*7}%s%n",
    "\U0001f9f5 e\u0301\u0302\u0303",
)
"""Symbols as a program may have them."""

HOSTILE_TITLE: Final = "<img src=y onerror=alert(5)>"
"""What a program may call itself and its threads."""


def find_trace(name: str) -> Path:
    """The trace of that name, which is made first if it is not there."""
    make, sources = _MAKERS[name]
    FOLDER.mkdir(parents=True, exist_ok=True)
    place = FOLDER / f"{name}-{_fingerprint(sources)}"
    trace = place / f"{name}.clew"
    with (FOLDER / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "done").exists():
            for old in FOLDER.glob(f"{name}-????????????????"):
                shutil.rmtree(old)
            place.mkdir()
            make(trace)
            (place / "done").touch()
    return trace


@cache
def _fingerprint(sources: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for path in (Path(__file__), *_iter_files(sources)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _iter_files(sources: Iterable[Path]) -> Iterable[Path]:
    for source in sources:
        found = sorted(source.rglob("*")) if source.is_dir() else [source]
        yield from (path for path in found if path.is_file() and path.suffix != ".pyc")


def _record_program(source: Path, mode: str, *options: str) -> Callable[[Path], None]:
    def make(trace: Path) -> None:
        program = trace.with_name(source.stem)
        flags = ["-O1", "-fno-inline", "-pthread", "-Wall", "-Wextra", "-Werror"]
        subprocess.run(["gcc", *flags, "-o", program, source], check=True)
        _record([program], trace, mode, *options)

    return make


def _record_thinned(trace: Path) -> None:
    """A program that does more than its budget has room for, so that most of its order is left out."""
    build_one(find(_THINNED))
    _record([find(_THINNED).path, "60000"], trace, "auto", "--budget", "0.02")


def _record_compared(mode: str, *arguments: str, flags: tuple[str, ...] = ()) -> Callable[[Path], None]:
    """A program that runs and builds of are compared; it is called the same, wherever it was built."""

    def make(trace: Path) -> None:
        program = trace.with_name("compared")
        subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", *flags, "-o", program, _COMPARED], check=True)
        _record([program, *arguments], trace, mode)

    return make


def _record_calls(mode: str) -> Callable[[Path], None]:
    """Calls of functions and of the system with their arguments, of a program with threads, files and a child."""

    def make(trace: Path) -> None:
        program = trace.with_name("calls")
        subprocess.run(["gcc", "-O1", "-pthread", "-Wall", "-Wextra", "-Werror", "-o", program, _CALLS], check=True)
        kinds = (word for kind in ("file", "process", "thread", "ipc", "memory") for word in ("--filter", kind))
        functions = (word for name in ("fopen", "fclose", "fputs") for word in ("--function", f"libc*:{name}"))
        told = trace.with_name("told")
        _record_api([program, trace.parent], trace, mode, *kinds, *functions, "-o", told)

    return make


def _record_pipeline(trace: Path) -> None:
    """A shell with programs that work together, each a process."""
    _record_api(["sh", _PIPELINE, trace.parent], trace, "full", "-o", trace.with_name("told"))


def _record_api(command: list[str | Path], trace: Path, mode: str, *options: str | Path) -> None:
    done = run([*clew_command("api", *options, "--trace", trace, "--mode", mode), "--", *command])
    if done.status != 0:
        raise RuntimeError(f"calls could not be recorded: {done.stderr.decode(errors='replace')}")


def _compact_shapes(trace: Path) -> None:
    """The same as `shapes-full`, in a fraction of its room."""
    done = run(clew_command("compact", "-q", "-o", trace, find_trace("shapes-full")))
    if done.status != 0:
        raise RuntimeError(f"shapes-full could not be compacted: {done.stderr.decode(errors='replace')}")


def _record_gzip(trace: Path) -> None:
    text = trace.with_name("text")
    text.write_bytes(b"".join(b"line %d of %d\n" % (number, number * number) for number in range(2000)))
    _record(["gzip", "-9kf", text], trace, "full")


def _record(command: list[str | Path], trace: Path, mode: str, *options: str) -> None:
    done = record(command, trace, "--mode", mode, *options)
    if done.status != 0:
        raise RuntimeError(f"{command} could not be recorded: {done.stderr.decode(errors='replace')}")


def _make_up(n_blocks: int, n_threads: int = 1, **more: Any) -> Callable[[Path], None]:
    def make(trace: Path) -> None:
        write_made_up_trace(trace, n_blocks, n_threads=n_threads, **more)

    return make


def _damage(trace: Path) -> None:
    """A trace whose manifest can be read, and whose blocks can not."""
    write_made_up_trace(trace, 300)
    part = trace / "blocks/part-00000.parquet"
    os.truncate(part, part.stat().st_size // 2)


_MAKERS: Final[dict[str, tuple[Callable[[Path], None], tuple[Path, ...]]]] = {
    **{
        f"shapes-{mode}": (_record_program(_SHAPES, mode), (_SHAPES, *_RECORDER))
        for mode in ("full", "counts", "region", "coverage")
    },
    "shapes-compact": (_compact_shapes, (_SHAPES, *_RECORDER, ROOT / "src/clew/analysis")),
    "losses": (_record_program(_LOSSES, "full", "--on-full", "drop"), (_LOSSES, *_RECORDER)),
    "thinned": (_record_thinned, (find(_THINNED).source, *_RECORDER)),
    "compared-first": (_record_compared("full"), (_COMPARED, *_RECORDER)),
    "compared-second": (_record_compared("full", "more"), (_COMPARED, *_RECORDER)),
    "compared-counts": (_record_compared("counts", "more"), (_COMPARED, *_RECORDER)),
    "compared-built": (_record_compared("full", flags=("-DSECOND",)), (_COMPARED, *_RECORDER)),
    "api-full": (_record_calls("full"), _API),
    "api-counts": (_record_calls("counts"), _API),
    "pipeline": (_record_pipeline, (*_API, _PIPELINE)),
    "gzip": (_record_gzip, _RECORDER),
    "small": (_make_up(10_000, 4), _MAKER),
    "large": (_make_up(100_000, 4), _MAKER),
    "huge": (_make_up(1_000_000), _MAKER),
    "hostile": (_make_up(600, names=HOSTILE_NAMES, title=HOSTILE_TITLE), _MAKER),
    "calls": (_make_up(3_000, 3, n_children=2, n_calls=2_000), _MAKER),
    "many": (_make_up(4_000, 80, n_children=1_000, title="name longer than room is"), _MAKER),
    "damaged": (_damage, _MAKER),
}
"""What makes each trace, and the files that what is made depends on."""
