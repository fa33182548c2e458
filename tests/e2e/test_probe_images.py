"""Probes in code that comes and goes, that has no names, no dynamic linker, or no file, and in allocators."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from clew.sessions.probes.specs import ContextField
from tests.e2e.probed_program import PROBES, at_once, calls_of, points, started
from tests.e2e.process_code import read_code
from tests.programs.build import build_plain

N_LOADED = 4
N_CALLS = 25


@pytest.fixture
def loading() -> Path:
    return build_plain(PROBES / "probed_loading.c", "-O2", "-pthread")


@pytest.fixture
def library() -> Path:
    return build_plain(PROBES / "probed_shared.c", "-O2", "-shared", "-fPIC", name="libprobed_shared.so")


def test_a_library_is_loaded_again_at_another_base(loading: Path, library: Path) -> None:
    """Its constructor is told each time; what lies where it was is not touched."""
    with started(loading, library) as running:
        native = running.ask("load")
        specs = calls_of("libprobed_shared.so!shared_work", fields=(ContextField("n", "arg1"),))
        found: list[set[int]] = []
        with at_once(running.pid, specs, pending=1) as one:
            for _ in range(N_LOADED):
                said, events = one.ask(running, "load")
                assert said == native
                entries = [event for event in events if event["event"].endswith("_entry")]
                assert [event["n"] for event in entries] == [100, *range(10)]
                assert len(events) == 2 * len(entries)
                found.append({event["ip"] for event in entries})
        assert all(len(places) == 1 for places in found)
        assert len(set.union(*found)) == N_LOADED
        assert running.ask("kept") == "1"
        assert running.end() == 0


@pytest.mark.long
def test_a_library_is_loaded_while_nobody_answers(loading: Path, library: Path) -> None:
    """The thread goes on after a while, and the session is told that it may have missed something."""
    with started(loading, library) as running:
        native = running.ask("load")
        with at_once(running.pid, calls_of("libprobed_shared.so!shared_work"), pending=1) as one:
            assert running.ask("load") == native
            one.read()
            (told,) = one.session.take_remarks()
            assert told.startswith("threads went on without waiting")
        assert running.end() == 0


def test_code_that_the_program_made_is_probed_by_address(loading: Path) -> None:
    with started(loading) as running:
        start = int(running.ask("made"), 16)
        native = running.ask(f"call {N_CALLS}")
        places = [start + offset for offset in (0, 1, 4, 8, 11, 14, 16, 20, 21)]
        with at_once(running.pid, points(*map(hex, places))) as one:
            assert running.ask(f"call {N_CALLS}") == native
            counts = Counter(event["ip"] for event in one.read())
            # The branch skips one instruction where the argument is below 3.
            assert counts == {place: N_CALLS - 3 * (place == start + 16) for place in places}
            # And one at a time.
            target = one.target
            probes = target.remove([*target.probes])
            for probe, place in zip(probes, places, strict=True):
                target.add([probe])
                assert running.ask(f"call {N_CALLS}") == native
                assert sum(one.count().values()) == counts[place]
                target.remove([probe.index])
        assert running.ask(f"call {N_CALLS}") == native


def test_the_allocator_is_probed(loading: Path) -> None:
    """Each call of it returns, whoever calls it; those of the program's own size are all there."""
    with started(loading) as running:
        code = read_code(running.pid)
        names = [f"libc.so.6!{name}" for name in ("malloc", "free", "realloc", "calloc")]
        fields = (ContextField("size", "arg1"), ContextField("other", "arg2"))
        with at_once(running.pid, calls_of(*names, fields=fields)) as one:
            assert running.ask("allocate 100") == "0"
            events = one.read()
        counts = Counter(event["event"] for event in events)
        for name in names:
            assert counts[f"{name}_entry"] == counts[f"{name}_exit"]
        assert sum(event["event"] == "libc.so.6!malloc_entry" and event["size"] == 54321 for event in events) == 400
        assert (
            sum(event["event"] == "libc.so.6!realloc_entry" and event["other"] == 2 * 54321 for event in events) == 400
        )
        assert read_code(running.pid) == code


@pytest.mark.parametrize("flags", [("-static",), ("-static-pie",), ("-no-pie",), ("-pie",)], ids=" ".join)
def test_a_stripped_program_is_probed_by_address(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """It has no names: where functions begin and end is told by the unwind table."""
    name = "probed_calls" + "".join(flags)
    program = build_plain(PROBES / "probed_calls.c", "-O1", *flags, name=name)
    symbols = subprocess.run(["nm", program], capture_output=True, check=True, text=True).stdout
    places = {one[2]: int(one[1], 16) for one in re.finditer(r"^(\S+) [tT] (add|descend|main)$", symbols, re.MULTILINE)}
    stripped = tmp_path / "stripped"
    shutil.copy(program, stripped)
    subprocess.run(["strip", "-s", stripped], check=True)
    native = subprocess.run([stripped], capture_output=True, text=True, check=False).stdout
    specs = calls_of(
        *(f"stripped!{places[name]:#x}" for name in ("add", "descend")), fields=(ContextField("n", "arg1"),)
    )
    with started(stripped, "waits") as running:
        with at_once(running.pid, specs) as one:
            running.tell()
            said = [running.hear() for _ in native.splitlines()]
            counts = one.count()
        assert said == native.splitlines()
        assert sorted(counts.values()) == [5, 5, 7, 7]
        assert running.end() == 3


PAGES = {
    "constant": b"const",
    "file": b"of a file",
    "file_end": b"at the",
    "behind_file": None,
    "guard": None,
    "crossing": None,
    "ended": b"ended",
    "nothing": None,
    "own": b"on the stack",
}


def test_strings_on_pages_of_all_kinds(tmp_path: Path) -> None:
    """Those that nobody has touched are read as the program would; bad ones are missing, and told as that."""
    program = build_plain(PROBES / "probed_pages.c", "-O1")
    with started(program, cwd=tmp_path) as running:
        fields = (ContextField("text", "str(arg1)"), ContextField("first", "*(u8 *)arg1"))
        with at_once(running.pid, points("given", fields=fields)) as one:
            for _ in range(2):
                assert running.ask() == "done"
                events = one.read()
                texts = dict(zip(PAGES, (event["text"] for event in events), strict=True))
                assert texts == PAGES
                firsts = dict(zip(PAGES, (event["first"] for event in events), strict=True))
                assert firsts == {
                    name: text[0] if text else None for name, text in (PAGES | {"crossing": b"c"}).items()
                }
        assert running.end() == 0
