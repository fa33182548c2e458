"""Captures that the engine works out are held against the plain interpreter, with random forms, where threads stop.

Each call of a function, and each return, is captured in both ways: the thread stops, and its registers and memory are
given to `interpret`; and the engine writes what its own code came to.
"""

from __future__ import annotations

import argparse
import math
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import clew
from clew.capture.form import Form
from clew.capture.interpreter import Value, interpret
from clew.sessions.calls import Call
from tests.fuzz.random_forms import make_form, make_returned
from tests.programs.build import SOURCES, build_plain

N_PLACES = 4
FORMS_AT_PLACE = 5
RETURNS_AT_PLACE = 2
TURNS = 25
OPERATIONS = 25


def build() -> Path:
    """The program whose functions are called."""
    return build_plain(SOURCES / "sessions/captured.c", "-O1", "-fno-inline", "-fno-ipa-cp")


def run_batch(program: Path, folder: Path, seed: int) -> list[str]:
    """Where the engine and the interpreter come to other values, or to other calls."""
    dice = random.Random(seed)
    begun = {place: [make_form(dice, OPERATIONS) for _ in range(FORMS_AT_PLACE)] for place in range(N_PLACES)}
    returned = {place: [make_returned(dice, OPERATIONS) for _ in range(RETURNS_AT_PLACE)] for place in begun}
    forms = {place: begun[place] + returned[place] for place in begun}
    expected: dict[int, list[list[tuple[Value, ...]]]] = {place: [[] for _ in forms[place]] for place in forms}
    kept: list[tuple[Value, ...]] = []

    def note(place: int, call: Call) -> None:
        kept[:] = [interpret(form.entry, call) or () for form in returned[place] if form.entry is not None]
        for form, rows in zip(begun[place], expected[place], strict=False):
            values = interpret(form, call)
            if values is not None:
                rows.append(values)

    def note_return(place: int, call: Call) -> None:
        for form, rows, own in zip(returned[place], expected[place][FORMS_AT_PLACE:], kept, strict=True):
            with mock.patch.object(call, "kept", own.__getitem__):
                values = interpret(form, call)
            if values is not None:
                rows.append(values)

    native, output = folder / "native", folder / "followed"
    subprocess.run([program, str(TURNS), native], check=True)
    with clew.spawn([program, str(TURNS), output]) as session:
        logs = {place: [_log(session, place, form) for form in forms[place]] for place in forms}
        for place in forms:
            session.on_call(f"place_{place}", partial(note, place))
            session.on_return(f"place_{place}", partial(note_return, place))
        session.resume()
        session.wait(120)
        found = {place: [_rows(log.read()) for log in logs[place]] for place in forms}
    is_same = output.read_bytes() == native.read_bytes()
    differences = [] if is_same else [f"seed {seed}: the program came to something else"]
    for place in forms:
        for number, form in enumerate(forms[place]):
            what = f"seed {seed}, place_{place}, form {number}"
            differences += _compare(what, form, expected[place][number], found[place][number])
    return differences


def _log(session: clew.Session, place: int, form: Form) -> Any:
    """A log of a form that no text says."""
    with mock.patch("clew.sessions.wanted.compile_capture", return_value=form):
        log = session.log_calls if form.entry is None else session.log_returns
        return log(f"place_{place}", capture=[str(number) for number in range(len(form.fields))])


def _rows(table: Any) -> list[tuple[Value, ...]]:
    columns = [column.to_pylist() for column in table.columns[4:]]
    return list(zip(*columns, strict=True))


def _compare(
    what: str, form: Form, expected: Sequence[tuple[Value, ...]], found: Sequence[tuple[Value, ...]]
) -> list[str]:
    by_turn, also = {row[0]: row for row in expected}, {row[0]: row for row in found}
    if by_turn.keys() != also.keys() or len(also) != len(found):
        return [f"{what}: turns {list(by_turn)} are expected, {list(also)} were found"]
    for turn, row in by_turn.items():
        for number, (value, other) in enumerate(zip(row, also[turn], strict=True)):
            if not _is_same(value, other):
                ways = f"{value!r} by the interpreter, {other!r} by the engine"
                return [f"{what}, turn {turn!r}, value {number}: {ways}; {form}"]
    return []


def _is_same(value: Value, other: Value) -> bool:
    if isinstance(value, float) and isinstance(other, float):
        is_number = not math.isnan(value) and not math.isnan(other)
        return math.copysign(1, value) == math.copysign(1, other) and value == other if is_number else value != other
    return value == other


def run_batches(about: str, run_one: Callable[[Path, Path, int], list[str]], n_each: int, what: str) -> int:
    """Run `run_one` with the program, a folder and a seed until the count, or the time, is up: a command's exit status.
    `about` is its help; each batch is `n_each` of `what`."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--seed", type=int, default=1, help="the first batch's seed; the others follow")
    parser.add_argument("--count", type=int, default=20, help="how many batches")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    arguments = parser.parse_args()
    start = time.monotonic()
    program = build()
    n_run = n_failures = 0
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        if time.monotonic() - start > arguments.seconds:
            break
        with tempfile.TemporaryDirectory(prefix="clew-fuzz-") as folder:
            differences = run_one(program, Path(folder), seed)
        n_run += n_each
        n_failures += len(differences)
        for line in differences:
            print(line, flush=True)
    print(f"{n_run} {what} at {TURNS} calls each: {n_failures} failures")
    return 1 if n_failures else 0


def main() -> int:
    """Random forms."""
    return run_batches(__doc__ or "", run_batch, N_PLACES * (FORMS_AT_PLACE + RETURNS_AT_PLACE), "random captures")


if __name__ == "__main__":
    sys.exit(main())
