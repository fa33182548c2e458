"""Each instruction of small functions, probed in a live process, one at a time and all at once, by each technique.

What the program says is what it says natively, and the events are the steps that the kernel makes with another run of
it, in the same order, with the same registers and flags.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Collection
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from clew.probing.native import ALL_TECHNIQUES, Technique
from clew.probing.planning import Planning
from clew.sessions.probes import probed_target
from clew.sessions.probes.specs import ContextField
from tests.e2e.probed_program import PROBES, at_once, hears, instructions_of, points, started
from tests.programs.build import SOURCES, build_plain

LIBRARY = SOURCES.parent / "unit" / "probing"
NAMES = ("rdi", "rsi", "rdx", "rcx", "rax", "rbx", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)))
N_FUNCTIONS = 21
"""That it calls, one for each line."""
STEP = np.dtype(
    [
        (name, "<u8")
        for name in (
            *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"),
            *("orig_rax", "rip", "cs", "rflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
        )
    ]
)
"""struct user_regs_struct (sys/user.h)."""
FLAGS = 0xCD5
"""Of arithmetic, and the direction."""
BUILDS = {
    "O2": ("-O2", "-fcf-protection=none", "-static", "-no-pie"),
    "O0": ("-O0", "-static", "-no-pie"),
    "Os": ("-Os", "-fcf-protection=full", "-static-pie"),
}
TECHNIQUES: dict[str, Collection[Technique]] = {
    "best": ALL_TECHNIQUES,
    "padding": (Technique.JUMP_PADDING, Technique.TRAP),
    "punned": (Technique.JUMP_PUNNED, Technique.TRAP),
    "branches": (Technique.BRANCHES, Technique.TRAP),
    "trap": (Technique.TRAP,),
}
Steps = npt.NDArray[np.void]


class Library:
    """The program with the functions in it, as it was built."""

    def __init__(self, build: str, folder: Path) -> None:
        sources = [str(LIBRARY / name) for name in ("functions.c", "functions.S", "harness.c")]
        self.path = build_plain(
            PROBES / "probed_library.c", *BUILDS[build], "-mno-avx", *sources, name=f"probed_library-{build}"
        )
        symbols = subprocess.run(["nm", self.path], capture_output=True, check=True, text=True).stdout
        found = re.findall(
            r"^([0-9a-f]+) [tT] ((?:[cs]_\w+)|twice|minus|turned|rax_is_a_target)$", symbols, re.MULTILINE
        )
        self.starts = {name: int(address, 16) for address, name in found if f" {name} " not in name}
        self.places = instructions_of(self.path, *self.starts)
        # Without address randomisation, all runs are at the same addresses.
        self.command = ("setarch", "-R", self.path)
        with started(*self.command) as running:
            self.said = [running.ask() for _ in range(N_FUNCTIONS)]
            lines = Path(f"/proc/{running.pid}/maps").read_text().splitlines()
            line = next(one for one in lines if one.endswith(str(self.path)))
            self.base = int(line.split("-")[0], 16) if "-static-pie" in BUILDS[build] else 0
        self.steps = self._step(folder / f"{build}.steps")

    def address_of(self, place: str) -> int:
        name, _, offset = place.partition("+")
        return self.base + self.starts[name] + int(offset)

    def _step(self, output: Path) -> Steps:
        """The registers in front of each instruction that is run of the functions for these lines."""
        stepper = build_plain(SOURCES.parent / "oracle" / "register_stepper.c", "-O2", "-Wall", "-Wextra", "-Werror")
        addresses = sorted(map(self.address_of, self.places))
        ends = (hex(addresses[0]), hex(addresses[-1]))
        done = subprocess.run(
            ["setarch", "-R", stepper, output, *ends, self.path],
            input="\n" * N_FUNCTIONS,
            capture_output=True,
            check=True,
            text=True,
        )
        assert done.stdout.splitlines() == ["ready", *self.said]
        steps: Steps = np.fromfile(output, STEP)
        steps = steps[np.isin(steps["rip"], np.array(addresses, np.uint64))]
        # An instruction that is repeated (rep) is one execution. It counts down.
        before, behind = steps[:-1], steps[1:]
        is_turn = np.append(False, (behind["rip"] == before["rip"]) & (behind["rcx"] == before["rcx"] - np.uint64(1)))
        result: Steps = steps[~is_turn]
        return result


@pytest.fixture(scope="module", params=["O2", *(pytest.param(name, marks=pytest.mark.long) for name in ("O0", "Os"))])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    return Library(request.param, tmp_path_factory.mktemp("steps"))


@pytest.fixture
def technique(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Collection[Technique]:
    """Has probes be planned by some techniques only."""
    techniques = TECHNIQUES[request.param]
    monkeypatch.setattr(probed_target, "Planning", functools.partial(Planning, techniques))
    return techniques


@pytest.mark.parametrize("technique", TECHNIQUES, indirect=True)
def test_all_at_once(library: Library, technique: Collection[Technique]) -> None:
    """Events are the steps, one by one, with all registers."""
    specs = points(*library.places, fields=(ContextField("regs", is_registers=True),))
    with started(*library.command) as running:
        with at_once(running.pid, specs) as probed:
            assert {armed.technique for armed in probed.target.armed} <= set(technique)
            assert len(probed.target.armed) == len(library.places)
            said, events = hears(running, N_FUNCTIONS, probed)
        assert said == library.said
        assert [running.ask() for _ in library.said] == library.said
    steps = library.steps
    assert len(steps) > 5000
    assert [event["ip"] for event in events] == steps["rip"].tolist()
    for name in NAMES:
        assert [event["regs"][name] for event in events] == steps[name].tolist(), name
    assert [event["regs"]["rflags"] & FLAGS for event in events] == (steps["rflags"] & FLAGS).tolist()


@pytest.mark.parametrize(
    "technique",
    ["best", *(pytest.param(one, marks=pytest.mark.long) for one in TECHNIQUES if one != "best")],
    indirect=True,
)
def test_one_at_a_time(library: Library, technique: Collection[Technique]) -> None:
    """Each instruction is told as often as it is stepped to, at its own technique, while others come and go."""
    specs = points(*library.places)
    addresses, counts = np.unique(library.steps["rip"], return_counts=True)
    expected = dict(zip(addresses.tolist(), counts.tolist(), strict=True))
    used = set()
    with started(*library.command) as running, at_once(running.pid, specs) as probed:
        target = probed.target
        probes = target.remove([*target.probes])
        for probe, place in zip(probes, library.places, strict=True):
            target.add([probe])
            [armed] = target.armed
            used.add(armed.technique)
            said, events = hears(running, N_FUNCTIONS, probed)
            assert said == library.said, place
            assert {event["ip"] for event in events} <= {library.address_of(place)}
            assert len(events) == expected.get(library.address_of(place), 0), place
            target.remove([probe.index])
        said, events = hears(running, N_FUNCTIONS, probed)
        assert (said, events) == (library.said, [])
    assert used <= set(technique)
    assert len(used) > 1 or len(technique) == 1
