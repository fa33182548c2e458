"""Backtraces of probes: who called, as the C library has it at the same time, whatever way a thread came by."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from clew.address import Pid
from clew.process.processors.chosen import native_processor
from clew.sessions.backtrace import unwind
from clew.sessions.probes import backtraces
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.specs import ContextField, ProbeSpec
from tests.e2e import runs
from tests.e2e.probed_program import PROBES, Probed, Program, at_once, build_cxx, instructions_of, points, started
from tests.programs.build import build_plain

BACKTRACE = ContextField("backtrace", backtrace=64)
MOST = 63
"""Frames of a backtrace that are behind the first, at most."""
BUILDS = [
    "-O2 -fomit-frame-pointer",
    *(pytest.param(one, marks=pytest.mark.long) for one in ("-O0", "-O2 -fno-omit-frame-pointer", "-O2 -no-pie")),
]


@pytest.fixture(scope="module", params=BUILDS)
def command(request: pytest.FixtureRequest) -> list[Path]:
    flags = str(request.param).split()
    name = "probed_unwinding" + re.sub(r"\W+", "-", str(request.param))
    libraries = [
        build_plain(
            PROBES / "probed_unwinding_library.c",
            *("-O2", "-shared", "-fPIC", f"-DDEPTH={depth}"),
            name=f"libprobed_unwinding{depth}.so",
        )
        for depth in (1, 7)
    ]
    return [build_cxx("probed_unwinding.cc", *flags, "-g", "-pthread", called=name), *libraries]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many frames threads knew of backtraces whose rest was asked for."""
    found: list[int] = []
    complete = backtraces.complete_backtrace

    def note(data: bytes, *others: Any) -> list[int]:
        found.append(int.from_bytes(data[4:8], "little"))
        return complete(data, *others)

    monkeypatch.setattr(backtraces, "complete_backtrace", note)
    return found


def callers_of(said: str) -> dict[int, list[list[int]]]:
    """By thread: who called, each time, as the program itself says it."""
    found: dict[int, list[list[int]]] = defaultdict(list)
    for note in said.split(";")[:-1]:
        tid, *frames = note.split()
        found[int(tid)].append([int(frame, 16) for frame in frames][:MOST])
    return found


def callers_told(events: Sequence[dict[str, Any]]) -> dict[int, list[list[int]]]:
    """The same, of events."""
    found: dict[int, list[list[int]]] = defaultdict(list)
    for one in events:
        found[one["tid"]].append(one["backtrace"][1:])
    return found


def functions(
    program: Program, probed: Probed, line: str = ""
) -> tuple[dict[int, list[list[int]]], list[dict[str, Any]]]:
    said, events = probed.ask(program, line)
    return callers_of(said), events


def test_who_called_is_what_the_program_itself_finds(command: list[Path], asked: list[int]) -> None:
    """And threads find all of it by themselves."""
    probe = ProbeSpec("reached", "reached", is_function=True, fields=(BACKTRACE,), return_fields=(BACKTRACE,))
    with started(*command) as program, at_once(program.pid, [probe]) as probed:
        for _ in range(3):
            wanted, events = functions(program, probed)
            assert len(wanted) > 9 and sum(map(len, wanted.values())) > 600
            for name in ("reached_entry", "reached_exit"):
                assert callers_told([one for one in events if one["event"] == name]) == wanted, name
    assert not asked


def test_any_instruction_has_the_same_callers(command: list[Path]) -> None:
    """In front of each instruction of a function that saves registers, and calls: whatever its frame is there."""
    places = instructions_of(command[0], "reached")
    with started(*command) as program, at_once(program.pid, points(*places, fields=(BACKTRACE,))) as probed:
        wanted, events = functions(program, probed)
        told: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for one in events:
            told[one["event"]].append(one)
        assert set(told) == set(places)
        for place, own in told.items():
            assert callers_told(own) == wanted, place


def test_in_the_middle_of_a_function_it_is_the_function_that_called(command: list[Path]) -> None:
    """At instructions of a function between whose calls there are others: the frames behind it are those that were
    behind it at its entry."""
    places = instructions_of(command[0], "pushes", "large", "growing")
    # gcc's rules for a frame that it aligns are wrong where that has been left, but for the return itself.
    places += instructions_of(command[0], "aligned")[:-2]
    with started(*command) as program, at_once(program.pid, points(*places, fields=(BACKTRACE,))) as probed:
        _, events = functions(program, probed)
        open_calls: dict[tuple[int, str], list[list[int]]] = defaultdict(list)
        n_checked = 0
        for one in events:
            function, _, offset = one["event"].partition("+")
            known = open_calls[one["tid"], function]
            if offset == "0":
                known.append(one["backtrace"][1:])
                continue
            assert one["backtrace"][1:] in known, one["event"]
            n_checked += 1
        assert n_checked > 5000


def test_threads_walk_while_libraries_come_and_go(command: list[Path], asked: list[int]) -> None:
    with started(*command) as program, at_once(program.pid, points("reached", fields=(BACKTRACE,))) as probed:
        wanted, events = functions(program, probed, "l")
        assert len(wanted) == 9 and len(wanted[min(wanted)]) == 40
        assert callers_told(events) == wanted
    # Who walked by tables that were no more the ones has walked once more; twice in a row that is rare.
    assert len(asked) < 10


def test_stacks_end_where_nothing_is_mapped() -> None:
    """The program's rules say that there are more frames. And its flags are strange."""
    command = build_plain(PROBES / "probed_stack_ends.c", "-O1", "-pthread")
    with started(command) as program:
        native = program.ask()
        probe = ProbeSpec("reached", "reached", is_function=True, fields=(BACKTRACE,), return_fields=(BACKTRACE,))
        with at_once(program.pid, [probe]) as probed:
            program.tell()
            events: list[dict[str, Any]] = []
            n_lost, is_over = 0, False
            while not is_over:
                is_over = program.has_said()
                probed.session.wait(0.001)
                batch = probed.session.read()
                events += [one for _, table in batch.tables for one in table.to_pylist()]
                # Eight thousand copies of stacks in a moment: nobody has to be in time for all of them.
                n_lost += sum(one.count for one in batch.losses)
            assert program.hear() == native
            assert len(events) + n_lost == 2 * (128 + 4000 + 10)
            events.sort(key=lambda one: one["sequence"])
            assert all(len(one["backtrace"]) >= 2 for one in events)
            # Of a caller that has ordinary rules.
            last = events[-20:] if not n_lost else []
            assert all(len(one["backtrace"]) >= 4 for one in last)


def test_a_backtrace_has_as_many_frames_as_were_asked_for(command: list[Path]) -> None:
    probes = [
        ProbeSpec(f"of{depth}", "reached", fields=(ContextField("backtrace", backtrace=depth),))
        for depth in (1, 2, 8, 16, 128)
    ]
    with started(*command) as program, at_once(program.pid, probes) as probed:
        wanted, events = functions(program, probed)
        for depth in (1, 2, 8, 16):
            told = callers_told([one for one in events if one["event"] == f"of{depth}"])
            assert told == {tid: [one[: depth - 1] for one in own] for tid, own in wanted.items()}, depth
        told = callers_told([one for one in events if one["event"] == "of128"])
        assert {tid: [one[:MOST] for one in own] for tid, own in told.items()} == wanted


def test_a_filter_and_other_values_are_beside_it(command: list[Path]) -> None:
    """A name, which machine code does not take, and a condition that only some calls meet."""
    fields = (ContextField("name", "comm"), BACKTRACE, ContextField("text", "str($rsp, 8)"))
    probes = [
        ProbeSpec("named", "reached", fields=fields),
        ProbeSpec("chosen", "reached", fields=(BACKTRACE,), condition="$rdi >= 300"),
        ProbeSpec("added", "reached", fields=(BACKTRACE, ContextField("n", "$rdi"))),
    ]
    with started(*command) as program, at_once(program.pid, probes) as probed:
        wanted, events = functions(program, probed)
        told = {name: [one for one in events if one["event"] == name] for name in ("named", "chosen", "added")}
        assert callers_told(told["named"]) == callers_told(told["added"]) == wanted
        chosen = callers_told([one for one in told["added"] if one["n"] >= 300])
        assert callers_told(told["chosen"]) == chosen
        assert {one["name"] for one in told["named"]} == {told["named"][0]["comm"]}


PYTHON = "import json\nwhile True: json.loads(json.dumps([{'a': n, 'b': [str(n)] * 3} for n in range(50)]))"
NODE = """const f = n => n < 2 ? JSON.stringify({a: [n, 'x'.repeat(n)]}).length : f(n - 1) + f(n - 2)
setInterval(() => f(12), 1)"""
PERL = """sub f { my $n = shift; $n ? f($n - 1) : [map { $_ x 9 } 1 .. 9] }
while (1) { f(10); select(undef, undef, undef, 0.001) }"""
GO = """package main
import ("fmt"; "sort"; "time")
//go:noinline
func leaf(n int) int { return n * 3 }
//go:noinline
func deep(n int) int { if n == 0 { return leaf(n) }; return deep(n - 1) + 1 }
func work() { for { s := []int{3, 1, 2}
 sort.Slice(s, func(a, b int) bool { leaf(a); return s[a] < s[b] })
 deep(20); _ = fmt.Sprint(s); time.Sleep(time.Millisecond) } }
func main() { for n := 0; n < 4; n++ { go work() }; time.Sleep(time.Hour) }
"""
RUST = """
#[inline(never)] fn deep(n: u32, map: &mut std::collections::BTreeMap<String, Vec<u32>>) -> usize {
    if n == 0 { map.insert(format!("{}", map.len()), vec![1, 2, 3]); map.len() } else { deep(n - 1, map) + 1 }
}
fn main() { let all: Vec<_> = (0..4).map(|_| std::thread::spawn(|| loop {
    let mut map = Default::default(); for n in 0..20 { deep(n, &mut map); }
    let _ = std::panic::catch_unwind(|| if map.len() > 3 { std::panic::resume_unwind(Box::new(3)) });
    std::thread::sleep(std::time::Duration::from_millis(1));
})).collect(); for one in all { one.join().unwrap() } }
"""
REGISTERS = ContextField("regs", is_registers=True)
PAGES = [ContextField(f"page{n}", f"bytes($rsp + {4096 * n}, 4096)") for n in range(8)]


def made(folder: Path, name: str, source: str, *compiler: str) -> list[str]:
    """A program of a source, compiled."""
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"{compiler[0]} is not here")
    (folder / name).write_text(source)
    environment = runs.environment() | {"CGO_ENABLED": "0"}
    done = subprocess.run([*compiler, name], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return [str(folder / "program")]


def command_of(language: str, folder: Path) -> list[str]:
    if language == "go":
        return made(folder, "program.go", GO, "go", "build", "-o", "program")
    if language == "rust":
        return made(folder, "program.rs", RUST, "rustc", "-O", "-o", "program")
    name, option, text = {
        "node": ("node", "-e", NODE),
        "perl": ("perl", "-e", PERL),
        "python": ("python3", "-c", PYTHON),
    }[language]
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not here")
    return [path, option, text]


@pytest.mark.parametrize(
    ("language", "place"),
    [
        ("python", "malloc"),
        ("perl", "libc.so.6!malloc"),
        ("rust", "malloc"),
        ("rust", "_Unwind_RaiseException"),
        pytest.param("go", "main.leaf", marks=pytest.mark.long),
        pytest.param("node", "malloc", marks=pytest.mark.long),
    ],
)
def test_programs_have_the_callers_that_their_whole_stacks_tell(language: str, place: str, tmp_path: Path) -> None:
    """As they are found here out of a copy of all of the stack, in which there are pages that the thread has not just
    written to."""
    processor, n_compared, n_frames = native_processor(), 0, 0
    probe = ProbeSpec("place", place, fields=(REGISTERS, BACKTRACE, *PAGES))
    with subprocess.Popen(command_of(language, tmp_path), env=runs.environment(), stdout=subprocess.DEVNULL) as process:
        try:
            time.sleep(1)
            with at_once(process.pid, [probe]) as probed:
                session = probed.session
                deadline = time.monotonic() + 60
                while n_compared < 100:
                    assert time.monotonic() < deadline, n_compared
                    session.wait(0.01)
                    loaded = session.images.of(Pid(process.pid))
                    for one in [row for _, table in session.read().tables for row in table.to_pylist()]:
                        start = one["regs"][processor.definition.stack_pointer]
                        # Up to where the stack ends.
                        stack = b"".join(takewhile(bool, (one[page.name] for page in PAGES)))

                        def read(address: int, size: int, start: int = start, stack: bytes = stack) -> bytes:
                            return stack[address - start :][:size] if address >= start else b""

                        found = unwind(
                            session.images, loaded, one["regs"], read, processor.architecture, processor.definition
                        )
                        wanted = [frame.pc for frame in found][: MOST + 1]
                        assert one["backtrace"][: len(wanted)] == wanted
                        # The last page is not there as a whole, which may be the first.
                        assert len(one["backtrace"]) <= len(wanted) + 4 or not stack
                        n_compared += 1
                        n_frames += len(wanted)
        finally:
            process.kill()
    assert n_frames > 4 * n_compared


def test_the_rest_is_found_here_where_rules_are_unusual(asked: list[int]) -> None:
    """The dynamic linker binds a function at its first call, by code whose frame is counted from another register."""
    flags = ("-O1", "-fno-builtin", "-no-pie", "-fcf-protection=none", "-Wl,-z,lazy")
    command = build_plain(PROBES / "probed_stubs.c", *flags)
    place = "ld-linux-x86-64.so.2!_dl_fixup"
    with started(command) as program:
        session = ProbeSession([ProbeSpec("bound", place, fields=(BACKTRACE,))])
        try:
            session.attach(Pid(program.pid))
            if session.missing():
                pytest.skip("the dynamic linker has no symbols")
            _, events = Probed(session).ask(program)
            names = [
                [session.reader.name_address(program.pid, pc - 1) for pc in one["backtrace"][1:]] for one in events
            ]
        finally:
            session.close()
    # Of each function that is called for the first time; the last of them by the program's first function itself.
    callers = [own[own.index("main") - 1] for own in names if own[0].startswith("_dl_runtime_resolve")]
    assert callers[:3] == ["first", "first", "second"] and len(callers) == len(asked) == len(names) >= 3
