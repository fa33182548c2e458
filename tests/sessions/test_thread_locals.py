"""Thread-local variables in captures: each thread's own, of the program, of libc, and of libraries that come late."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.errors import CaptureError
from tests.programs.build import SOURCES, build_plain

N_THREADS = 6
SOURCE, LIBRARY = SOURCES / "sessions/thread_locals.c", SOURCES / "sessions/thread_locals_library.c"
SHARED = ["-shared", "-fPIC"]


@pytest.fixture(params=["general", "initial"])
def library(request: pytest.FixtureRequest) -> Path:
    """The library: its variables are found by its module's number, or lie beside the program's (initial-exec)."""
    options = {"general": ["-O2", "-g"], "initial": ["-O2", "-ftls-model=initial-exec"]}[request.param]
    return build_plain(LIBRARY, *SHARED, *options, name=f"thread_locals.{request.param}.so")


@pytest.fixture(params=["pie", "static"])
def program(request: pytest.FixtureRequest) -> Path:
    """The program, with debug information and without."""
    options = {"pie": ["-O2", "-g"], "static": ["-O1", "-no-pie"]}[request.param]
    return build_plain(SOURCE, *options, "-pthread", name=f"thread_locals.{request.param}")


def rows(output: str, name: str) -> list[tuple[int, ...]]:
    lines = (line.split() for line in output.splitlines())
    return sorted(tuple(int(word) for word in words) for first, *words in lines if first == name)


def test_each_thread_has_its_own(program: Path, library: Path) -> None:
    command: list[Any] = [program, library, str(N_THREADS)]
    with clew.spawn(command, stdout=subprocess.PIPE) as session:
        log = session.log_calls(
            "here", capture=["arg1", "errno", "tls:own", "*(long*)&tls:record"][: 3 + _has_type(program)]
        )
        seen: list[tuple[Any, ...]] = []
        session.on_call(
            "here", lambda call: seen.append(tuple(call.captured.values())), capture=["arg1", "errno", "tls:own"]
        )
        in_library: list[tuple[Any, ...]] = []
        session.on_call(
            "in_library_here",
            lambda call: in_library.append(tuple(call.captured.values())),
            capture=["arg1", "tls:hidden", "tls:shared"],
        )
        session.resume()
        assert session.stdout is not None
        output = session.stdout.read().decode()
        session.wait(60)
        logged = sorted(zip(*(column.to_pylist() for column in log.read().columns[4:]), strict=True))
    expected = rows(output, "here")
    assert len(expected) == N_THREADS
    assert logged == [row[: 3 + _has_type(program)] for row in expected]
    assert sorted(seen) == [row[:3] for row in expected]
    assert sorted(in_library) == rows(output, "in_library_here")


def _has_type(program: Path) -> int:
    """Of what is no number the type is known from debug information only."""
    return int(program.name.endswith("pie"))


def test_a_thread_that_has_no_instance_yet_has_none(library: Path) -> None:
    """Blocks of libraries that come late are made when a thread asks first."""
    program = build_plain(SOURCE, "-O2", "-g", "-pthread", name="thread_locals.pie")
    with clew.spawn([program, library, "2"], stdout=subprocess.DEVNULL) as session:
        log = session.log_calls("here", capture=["arg1", "errno"])
        probe = session.on_call("here", lambda call: values.append(call["tls:hidden"]), capture=["tls:hidden"])
        values: list[Any] = []
        # What it names comes with the library.
        assert probe.n_places == 0
        session.resume()
        session.wait(60)
        assert probe.n_places == 1 and log.read().num_rows == 2
    is_beside_the_program = "initial" in library.name
    assert values == [1000, 1000] if is_beside_the_program else values == [None, None]


def test_images_are_named(called: Path) -> None:
    with clew.spawn([called, "1"]) as session:
        seen = []
        session.on_call(
            "add", lambda call: seen.append(call.captured), capture=["errno", "tls:libc.so.6!errno", "&errno"]
        )
        session.resume()
        session.wait(60)
        assert seen and all(row["errno"] == row["tls:libc.so.6!errno"] == 0 and row["&errno"] for row in seen)


def test_what_type_it_is_must_be_known_for_a_log(called: Path) -> None:
    with clew.spawn([called, "1"]) as session, pytest.raises(CaptureError, match="of which type it is"):
        session.log_calls("add", capture=["tls:absent"])
