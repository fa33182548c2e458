"""Builds the test programs: one small program per behaviour, in C, C++, assembly, Rust or Go, described by its head.

Runs on the machine that tests. Knows the compiler; does not know clew: nothing here records anything.

The head of a source is a comment with lines `key: value`:

    what     one line: the behaviour
    build    compiler flags (default -O2)
    also     NAME FLAGS: a second build of the same source, called SOURCE.NAME (may be repeated)
    compiler which one, if not the usual one of its language; without it the tests skip the program, and say so
    with     other files of this folder compiled into a shared library beside the program, NAME.so
    status   exit status, or the name of the signal that ends it (default 0)
    lost     what its trace says that it lacks: names of losses, as the manifest has them
    differs  why it is known to behave differently when recorded, for now
    needs    processor features, as /proc/cpuinfo names them, `root`, `adopter`: orphans go to the first process or
             to systemd, `breakpoints`: programs may set hardware breakpoints on themselves, or `probes`: and probes of
             the kernel; without them the tests skip the program, and say so
    traits   words the tests select by; WORD:NAME means it only for the build called SOURCE.NAME:
               oracle       one thread, the same instructions every time: is compared with single-stepping
               oracle-long  the same, but over 300,000 instructions
               oracle-instructions  the same, but its code changes: compared by instructions instead of blocks
               addresses    prints addresses as they are: compared without address randomisation
               unordered    its lines may come in any order: compared sorted
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
BIN = SOURCES / "bin"
COMPILERS = {".c": "gcc", ".cc": "g++", ".S": "gcc", ".rs": "rustc", ".go": "go", ".py": "gcc"}
LIBRARIES = SOURCES / "libraries"
_HEAD = re.compile(r"^[/#* \"]*(what|build|also|compiler|with|status|lost|differs|needs|traits):\s*(.*?)\s*(\*/)?$")


@dataclass(frozen=True)
class Program:
    """One built test program.

    `status` is what a shell would say: 0 to 255, or 128 + N for a program that signal N ends.
    """

    name: str
    source: Path
    what: str
    compiler: str
    flags: tuple[str, ...]
    libraries: tuple[str, ...]
    status: int
    lost: frozenset[str]
    differs: str
    needs: frozenset[str]
    traits: frozenset[str]

    @property
    def path(self) -> Path:
        return BIN / self.name

    @property
    def is_static(self) -> bool:
        """Whether no dynamic linker runs before it."""
        return bool({"-static", "-static-pie"} & set(self.flags))

    def linked_statically(self) -> Program:
        """The same program without the dynamic linker, which is in no catalogue: `build_one` makes it."""
        return replace(self, name=f"{self.name}.alone", flags=(*self.flags, "-static"))

    @property
    def missing(self) -> list[str]:
        """What it needs and this machine lacks: processor features, rights, its compiler."""
        rights = {"root"} if os.geteuid() == 0 else set()
        if "adopter" in self.needs and is_adopter_known():
            rights.add("adopter")
        if "breakpoints" in self.needs and may_set_breakpoints():
            rights.add("breakpoints")
        if "probes" in self.needs and may_set_probes():
            rights.add("probes")
        compilers = set() if shutil.which(self.compiler) else {self.compiler}
        return sorted((self.needs - processor_features() - rights) | compilers)


@cache
def processor_features() -> frozenset[str]:
    """The flags of the first processor, as /proc/cpuinfo names them."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


_ORPHAN = """
import os, time
parent = os.getpid()
if os.fork() == 0:
    while os.getppid() == parent:
        time.sleep(0.001)
    print(os.getppid(), flush=True)
os._exit(0)
"""


@cache
def find_adopter() -> int:
    """The process that orphans get for a parent here."""
    return int(subprocess.run([sys.executable, "-c", _ORPHAN], stdout=subprocess.PIPE, check=True).stdout)


def is_adopter_known() -> bool:
    """Whether orphans go to the first process or to systemd, which is all that can be told from outside."""
    adopter = find_adopter()
    return adopter == 1 or Path(f"/proc/{adopter}/comm").read_text() == "systemd\n"


def may_set_breakpoints() -> bool:
    """Whether this process may set a hardware breakpoint on code of its own."""
    breakpoint_event, execution, place, own_length = 5, 4, 4096, 8
    return may_open_event(breakpoint_event, execution, place, own_length)


def may_set_probes() -> bool:
    """Whether this process may set a probe of the kernel on code of its own (uprobes)."""
    kind = Path("/sys/bus/event_source/devices/uprobe/type")
    path = ctypes.create_string_buffer(b"/bin/true")
    return kind.is_file() and may_open_event(int(kind.read_text()), 0, ctypes.addressof(path), 4096)


def may_open_event(kind: int, breakpoint_kind: int, first: int, second: int) -> bool:
    """Whether this process may count an event of its user code (perf_event_open(2))."""
    perf_event_open, attribute_bytes, exclude_kernel_and_hv = 298, 72, 3 << 5
    head = [kind, attribute_bytes, 0, 0, 0, 0, exclude_kernel_and_hv, 0, breakpoint_kind]
    attributes = struct.pack("=IIQQQQQIIQQ", *head, first, second)
    event: int = ctypes.CDLL(None).syscall(perf_event_open, attributes, 0, -1, -1, 0)
    if event >= 0:
        os.close(event)
    return event >= 0


def parse_status(text: str) -> int:
    """A number, or a signal's name: 128 + its number."""
    return int(text) if text.isdigit() else 128 + signal.Signals[text]


def parse_head(source: Path) -> Iterator[Program]:
    """The programs built from one source: itself, then its `also` builds."""
    single: dict[str, str] = {}
    also: list[str] = []
    for line in source.read_text().splitlines()[:25]:
        match = _HEAD.match(line)
        if match is None:
            continue
        key, value = match.group(1), match.group(2)
        if key == "also":
            also.append(value)
        elif key in single:
            raise ValueError(f"{source.name}: two lines {key!r} in its head")
        else:
            single[key] = value
    if "what" not in single:
        raise ValueError(f"{source.name}: no line 'what' in its head")
    builds = [(source.stem, single.get("build", "" if source.suffix in (".rs", ".go") else "-O2"))]
    builds += [(f"{source.stem}.{line.split()[0]}", line.partition(" ")[2]) for line in also]
    for name, flags in builds:
        yield Program(
            name=name,
            source=source,
            what=single["what"],
            compiler=single.get("compiler", COMPILERS[source.suffix]),
            flags=tuple(shlex.split(flags)),
            libraries=tuple(single.get("with", "").split()),
            status=parse_status(single.get("status", "0")),
            lost=frozenset(single.get("lost", "").split()),
            differs=single.get("differs", ""),
            needs=frozenset(single.get("needs", "").split()),
            traits=_select(single.get("traits", "").split(), name.partition(".")[2]),
        )


def _select(traits: list[str], build_name: str) -> frozenset[str]:
    parts = [trait.partition(":") for trait in traits]
    return frozenset(trait for trait, _, only in parts if only in ("", build_name))


@cache
def catalogue() -> tuple[Program, ...]:
    """Every test program, built or not, sorted by name."""
    sources = [path for path in SOURCES.iterdir() if path.suffix in COMPILERS and path.suffix != ".py"]
    sources += (SOURCES / "generators").glob("*.py")
    return tuple(sorted((p for source in sources for p in parse_head(source)), key=lambda p: p.name))


def programs_to_attach() -> tuple[Program, ...]:
    """The programs of the folder `attach`, which are built into one of that name."""
    flags = ("-Wall", "-Wextra", "-Werror")
    heads = (program for source in sorted((SOURCES / "attach").glob("*.c")) for program in parse_head(source))
    return tuple(replace(one, name=f"attach/{one.name}", flags=(*flags, *one.flags)) for one in heads)


def find(name: str) -> Program:
    """The program of that name; KeyError when there is none."""
    for program in catalogue():
        if program.name == name:
            return program
    raise KeyError(name)


def _fingerprint(program: Program) -> str:
    digest = hashlib.sha256()
    headers = sorted([*SOURCES.glob("*.h"), *SOURCES.glob("*.inc")])
    libraries = [LIBRARIES / name for name in program.libraries]
    for path in (program.source, *headers, *libraries, Path(__file__)):
        digest.update(path.read_bytes())
    digest.update(repr((program.flags, _compiler_version(program.compiler))).encode())
    return digest.hexdigest()


@cache
def _compiler_version(compiler: str) -> str:
    option = "version" if compiler == "go" else "--version"
    return subprocess.run([compiler, option], capture_output=True, text=True, check=True).stdout


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)} failed:\n{done.stderr}")


def build(program: Program) -> None:
    """Compile one program, if its sources or flags have changed. RuntimeError with the compiler's words if it fails."""
    if shutil.which(program.compiler) is None:
        return
    stamp = program.path.with_name(f".{program.path.name}.stamp")
    fingerprint = _fingerprint(program)
    if stamp.exists() and program.path.exists() and stamp.read_text() == fingerprint:
        return
    source = program.source
    if source.suffix == ".py":
        generated = BIN / f"{program.name}.generated.S"
        _run([sys.executable, str(source), str(generated)])
        source = generated
    for name in program.libraries:
        target = BIN / f"{Path(name).stem}.so"
        _run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(target), str(LIBRARIES / name)])
    flags = list(program.flags)
    libraries = [flag for flag in flags if flag.startswith("-l")]
    flags = [flag for flag in flags if not flag.startswith("-l")]
    command = [program.compiler, *flags, "-o", str(program.path), str(source), *libraries]
    if program.source.suffix == ".go":
        command.insert(1, "build")
    elif program.source.suffix != ".rs":
        command.insert(1, f"-I{SOURCES}")
    program.path.parent.mkdir(exist_ok=True)
    _run(command)
    stamp.write_text(fingerprint)


def build_all(programs: Sequence[Program] | None = None, jobs: int = 2) -> None:
    """Build what is not up to date, of the catalogue if not told of what; several processes may call this together."""
    BIN.mkdir(exist_ok=True)
    with (BIN / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(build, program) for program in programs or catalogue()]:
                done.result()


def build_one(program: Program) -> None:
    """Build a program of no catalogue if it is not up to date, as `build_all` does."""
    BIN.mkdir(exist_ok=True)
    with (BIN / f".{program.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        build(program)


def build_plain(source: Path, *flags: str, name: str = "") -> Path:
    """The program of a source in C without a head, built when that is newer; called like the source if not told."""
    BIN.mkdir(exist_ok=True)
    program = BIN / (name or source.stem)
    with (BIN / f".{program.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists() or program.stat().st_mtime_ns < source.stat().st_mtime_ns:
            made = program.with_suffix(".new")
            _run(["gcc", *flags, "-o", str(made), str(source)])
            os.replace(made, program)
    return program


if __name__ == "__main__":
    build_all()
    for built in catalogue():
        print(f"{built.name:32}{built.what}")
