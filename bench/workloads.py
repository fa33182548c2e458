"""The programs that are measured: compiled ones, interpreters, compressors, a compiler; each in two sizes.

Runs on the machine that measures. Knows how to make and start each; does not measure and knows no clew.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bench.inputs import MEGABYTE, make_c_source, make_sql, make_text, make_wide_main, make_wide_source

PROGRAMS = Path(__file__).resolve().parent / "programs"
BIN = Path(__file__).resolve().parent / "bin"

COMPILER_FLAGS = {
    "nested_loops": ["-O1"],
    "fib": ["-O1"],
    "fptr": ["-O2"],
    "virt": ["-O2"],
    "goto": ["-O2", "-fno-gcse", "-fno-crossjumping", "--param", "max-goto-duplication-insns=40"],
    "switch": ["-O2"],
    "qsort": ["-O2"],
    "threads": ["-O2", "-pthread"],
    "fib_loop": ["-O2"],
    "goto_64": ["-O2", "-fno-gcse", "-fno-crossjumping", "--param", "max-goto-duplication-insns=40"],
    "sieve": ["-O2"],
    "tiny_loops": ["-O2"],
    "coroutines": ["-O2"],
    "nested_loops_static": ["-O1", "-static"],
    "signals": ["-O2"],
    "probed": ["-O1"],
    "probe_hits": ["-O2", "-no-pie"],
    "probe_hits_ust": ["-O2", "-no-pie", "-DWITH_UST", f"-I{PROGRAMS}", "-Wl,--no-as-needed", "-llttng-ust"],
    "api_calls": ["-O1", "-fno-builtin"],
    "trapped": ["-O1"],
    "short_threads": ["-O2", "-pthread"],
    "probe_pauses": ["-O2", "-pthread"],
    "exceptions": ["-O2"],
    "first_instruction": ["-O1", "-static", "-nostdlib", "-fno-stack-protector"],
}


_WIDE_PARTS = 63
_WIDE_FUNCTIONS = 2000
_WIDE_CALLED = 11_000  # 200,000 blocks


@dataclass(frozen=True)
class Workload:
    """A command to measure, and what it reads on standard input."""

    name: str
    size: str  # long or short
    command: tuple[str, ...]
    stdin: Path | None = None

    @property
    def key(self) -> str:
        return f"{self.name}-{self.size}"


def compile_program(name: str, of: str = "") -> str:
    """Path of a compiled benchmark program, compiled when its source, which may be that of another one, is newer."""
    BIN.mkdir(exist_ok=True)
    stem = of or name
    source = next(path for path in PROGRAMS.iterdir() if path.stem == stem and path.suffix in (".c", ".cc"))
    program = BIN / name
    newest = max(source.stat().st_mtime_ns, Path(__file__).stat().st_mtime_ns)
    if not program.exists() or program.stat().st_mtime_ns < newest:
        compiler = "g++" if source.suffix == ".cc" else "gcc"
        subprocess.run([compiler, *COMPILER_FLAGS[name], "-o", program, source], check=True)
    return str(program)


def compile_wide() -> str:
    """Path of a program of 100 MB of code and 126,000 functions, whose argument says how many of them it calls.

    One part is compiled, and copied under other names: so many functions would take the compiler a quarter of an hour.
    """
    BIN.mkdir(exist_ok=True)
    part, main = make_wide_source(_WIDE_FUNCTIONS), make_wide_main(_WIDE_PARTS, _WIDE_FUNCTIONS, _WIDE_CALLED)
    program = BIN / f"wide-{main.stem}-{part.stem}"
    if not program.exists():
        with tempfile.TemporaryDirectory(dir=BIN) as folder:
            compiled = Path(folder, "part.o")
            subprocess.run(["gcc", "-O0", "-fPIE", "-c", "-o", compiled, part], check=True)
            copies = [Path(folder, f"part{index}.o") for index in range(_WIDE_PARTS)]
            for copy in copies:
                subprocess.run(["objcopy", f"--prefix-symbols={copy.stem}_", compiled, copy], check=True)
            linked = Path(folder, "linked")
            subprocess.run(["gcc", "-O1", "-pie", "-fPIE", "-o", linked, main, *copies], check=True)
            linked.replace(program)
    return str(program)


def compile_java(name: str) -> str | None:
    """The folder of a compiled Java program; None without a compiler here."""
    compiler = shutil.which("javac")
    if compiler is None:
        return None
    BIN.mkdir(exist_ok=True)
    source, compiled = PROGRAMS / f"{name}.java", BIN / f"{name}.class"
    if not compiled.exists() or compiled.stat().st_mtime_ns < source.stat().st_mtime_ns:
        subprocess.run([compiler, "-d", BIN, source], check=True)
    return str(BIN)


@cache
def find_compiler_proper() -> str | None:
    """Path of gcc's cc1; None where it cannot be found."""
    done = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=False)
    path = done.stdout.strip()
    return path if Path(path).is_absolute() and Path(path).exists() else None


def _compiled(name: str, *arguments: int) -> Callable[[], tuple[str, ...]]:
    return lambda: (compile_program(name), *(str(argument) for argument in arguments))


def _tool(*words: str | Callable[[], str]) -> Callable[[], tuple[str, ...] | None]:
    """A command of this machine; None where the program is missing."""

    def find() -> tuple[str, ...] | None:
        program = words[0]() if callable(words[0]) else shutil.which(words[0])
        if program is None:
            return None
        return (program, *(word() if callable(word) else word for word in words[1:]))

    return find


def _text(size_bytes: int) -> Callable[[], str]:
    return lambda: str(make_text(size_bytes))


def _python(script: str, argument: int) -> Callable[[], tuple[str, ...]]:
    return lambda: (sys.executable, "-I", "-S", str(PROGRAMS / script), str(argument))


def _java(name: str, argument: int) -> Callable[[], tuple[str, ...] | None]:
    def find() -> tuple[str, ...] | None:
        program, folder = shutil.which("java"), compile_java(name)
        return None if program is None or folder is None else (program, "-cp", folder, name, str(argument))

    return find


def _sqlite(rows: int) -> Callable[[], tuple[str, ...] | None]:
    return _tool("sqlite3", ":memory:", lambda: f".read {make_sql(rows)}")


def _compiler(functions: int) -> Callable[[], tuple[str, ...] | None]:
    def find() -> tuple[str, ...] | None:
        program = find_compiler_proper()
        source = str(make_c_source(functions))
        return None if program is None else (program, "-quiet", "-O2", source, "-o", "-")

    return find


def _openssl(files: int) -> Callable[[], tuple[str, ...] | None]:
    return _tool("openssl", "dgst", "-sha512", *([_text(32 * MEGABYTE)] * files))


# name -> (long, short): about 2 s and 0.05 to 0.2 s on the machine of bench/README.md
_SIZES: dict[str, tuple[Callable[[], tuple[str, ...] | None], Callable[[], tuple[str, ...] | None]]] = {
    "nested_loops": (_compiled("nested_loops", 170), _compiled("nested_loops", 17)),
    "fib": (_compiled("fib", 42), _compiled("fib", 37)),
    "fptr": (_compiled("fptr", 300_000_000), _compiled("fptr", 25_000_000)),
    "virt": (_compiled("virt", 1_200_000), _compiled("virt", 60_000)),
    "goto": (_compiled("goto", 400_000_000), _compiled("goto", 20_000_000)),
    "switch": (_compiled("switch", 400_000_000), _compiled("switch", 20_000_000)),
    "qsort": (_compiled("qsort", 14_000_000), _compiled("qsort", 700_000)),
    "threads": (_compiled("threads", 1_500_000), _compiled("threads", 50_000)),
    "threads_64": (_compiled("threads", 93_750, 64), _compiled("threads", 3_125, 64)),
    "fib_loop": (_compiled("fib_loop", 44), _compiled("fib_loop", 38)),
    "goto_64": (_compiled("goto_64", 300_000_000), _compiled("goto_64", 15_000_000)),
    "sieve": (_compiled("sieve", 850), _compiled("sieve", 42)),
    "tiny_loops": (_compiled("tiny_loops", 1_500_000_000), _compiled("tiny_loops", 75_000_000)),
    "coroutines": (_compiled("coroutines", 80_000_000), _compiled("coroutines", 4_000_000)),
    "short_threads": (_compiled("short_threads", 40_000), _compiled("short_threads", 5_000)),
    "signals": (_compiled("signals", 1_500_000), _compiled("signals", 150_000)),
    "exceptions": (_compiled("exceptions", 1_000_000), _compiled("exceptions", 50_000)),
    "gzip": (_tool("gzip", "-9c", _text(40 * MEGABYTE)), _tool("gzip", "-9c", _text(2 * MEGABYTE))),
    "bzip2": (_tool("bzip2", "-9c", _text(36 * MEGABYTE)), _tool("bzip2", "-9c", _text(MEGABYTE))),
    "xz": (_tool("xz", "-6c", _text(4 * MEGABYTE)), _tool("xz", "-6c", _text(MEGABYTE // 3))),
    "sqlite3": (_sqlite(300_000), _sqlite(15_000)),
    "py_fannkuch": (_python("fannkuch.py", 10), _python("fannkuch.py", 8)),
    "py_tasks": (_python("tasks.py", 1_700_000), _python("tasks.py", 50_000)),
    "perl": (
        _tool("perl", str(PROGRAMS / "words.pl"), _text(2 * MEGABYTE), "18"),
        _tool("perl", str(PROGRAMS / "words.pl"), _text(MEGABYTE), "1"),
    ),
    "openssl": (_openssl(45), _openssl(2)),
    "cc1": (_compiler(350), _compiler(22)),
    "node": (
        _tool("node", str(PROGRAMS / "jit.js"), "400"),
        _tool("node", str(PROGRAMS / "jit.js"), "5"),
    ),
    "java": (_java("Merge", 2500), _java("Merge", 20)),
}


def load_workloads(sizes: list[str], names: list[str]) -> list[Workload]:
    """The workloads of these sizes (long, short, start) and names (none: all); missing tools are left out."""
    workloads = []
    for name, makers in _SIZES.items():
        for size, make in zip(("long", "short"), makers, strict=True):
            if size not in sizes or (names and name not in names):
                continue
            command = make()
            if command is None:
                print(f"{name}: not on this machine, left out", file=sys.stderr)
                continue
            workloads.append(Workload(name, size, command))
    if "start" in sizes and (not names or "py_start" in names):
        workloads.append(Workload("py_start", "start", (sys.executable, "-I", "-S", "-c", "pass")))
    if "start" in sizes and (not names or "big_start" in names):
        workloads.append(Workload("big_start", "start", (compile_wide(), "300")))
    return workloads


def make_translation_workloads() -> list[Workload]:
    """Programs with very much code that runs once or rarely: what is spent on them is spent on translating."""
    compiler = _compiler(22)()
    return [
        Workload("once", "short", (compile_wide(), str(_WIDE_CALLED))),
        *([Workload("cc1", "short", compiler)] if compiler else []),
    ]


def make_static_loops() -> Workload:
    """nested_loops, long, linked statically: nearly all that it executes is its own code."""
    program = compile_program("nested_loops_static", of="nested_loops")
    return Workload("nested_loops_static", "long", (program, "170"))


def make_true() -> Workload:
    """The program that does nothing: what recording costs at least."""
    program = shutil.which("true")
    if program is None:
        raise FileNotFoundError("no program `true` on this machine")
    return Workload("true", "start", (program,))
