"""Conditions of injections, which the dispatcher works out in the target, are held against the plain interpreter.

They are random. At each call of a function the thread stops, and its registers and memory are given to `interpret`; and
the engine says what it has done to the call: delays of no time, which change nothing.
"""

from __future__ import annotations

import random
import subprocess
import sys
from functools import partial
from pathlib import Path
from unittest import mock

import clew
from clew.api.injection_plan import InjectionPlan
from clew.capture.form import Form, Instruction
from clew.capture.interpreter import interpret
from clew.protocol._constants import CaptureOperation, CaptureType, Injected, InjectField
from clew.sessions.calls import Call
from clew.sessions.where import parse_where
from tests.fuzz.captures import N_PLACES, OPERATIONS, TURNS, run_batches
from tests.fuzz.random_forms import make_condition

KINDS = (Injected.DELAY_ENTER, Injected.DELAY_EXIT)
"""One for each injection at a place, by which they are told apart."""


def with_fields(form: Form, what: Injected) -> Form:
    """The form of an injection that does `what` at all calls where a condition holds."""
    values = dict.fromkeys(InjectField, 0) | {InjectField.WHAT: what, InjectField.FIRST: 1, InjectField.STEP: 1}
    values[InjectField.LAST] = (1 << 64) - 1
    first = len(form.instructions)
    constants = [Instruction(CaptureOperation.CONSTANT, CaptureType.U64, immediate=values[one]) for one in InjectField]
    fields = range(first, first + len(constants))
    return Form([*form.instructions, *constants], list(fields), form.condition, form.data)


def run_batch(program: Path, folder: Path, seed: int) -> list[str]:
    """Where the engine and the interpreter do other things to calls."""
    dice = random.Random(seed)
    forms = {place: [make_condition(dice, OPERATIONS) for _ in KINDS] for place in range(N_PLACES)}
    expected: dict[int, list[int]] = {place: [] for place in forms}

    def note(place: int, call: Call) -> None:
        held = [kind for form, kind in zip(forms[place], KINDS, strict=True) if interpret(form, call) is not None]
        expected[place].append(sum(held))

    native, output = folder / "native", folder / "followed"
    subprocess.run([program, str(TURNS), native], check=True)
    with clew.spawn([program, str(TURNS), output]) as session:
        for place, own in forms.items():
            for form, kind in zip(own, KINDS, strict=True):
                with mock.patch("clew.sessions.wanted.compile_capture", return_value=with_fields(form, kind)):
                    session._probes.inject([(parse_where(f"place_{place}"), InjectionPlan(("0",), None))])
        logs = {place: session.log_calls(f"place_{place}", capture=["injected"]) for place in forms}
        for place in forms:
            session.on_call(f"place_{place}", partial(note, place))
        session.resume()
        session.wait(120)
        found = {place: log.read()["injected"].to_pylist() for place, log in logs.items()}
    is_same = output.read_bytes() == native.read_bytes()
    differences = [] if is_same else [f"seed {seed}: the program came to something else"]
    for place in forms:
        if found[place] != expected[place]:
            both = f"{expected[place]} by the interpreter, {found[place]} by the engine"
            differences.append(f"seed {seed}, place_{place}: {both}; {forms[place]}")
    return differences


def main() -> int:
    """Random conditions."""
    return run_batches(__doc__ or "", run_batch, N_PLACES * len(KINDS), "random conditions")


if __name__ == "__main__":
    sys.exit(main())
