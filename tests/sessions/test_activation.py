"""Events between two places: from where a thread comes to one address until it comes to the other."""

from __future__ import annotations

import os
import time
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import clew
from clew.binary.symbols import load_symbols
from clew.errors import ControlError, UsageError
from clew.protocol.codec import FlowKind
from clew.sessions.events.gates import Places
from tests.programs.build import build_one, catalogue

Array = npt.NDArray[Any]
TURNS = 60


def read_events(
    called: Path,
    events: set[str],
    *,
    activate: list[int] | None = None,
    deactivate: list[int] | None = None,
    n_threads: int = 1,
) -> Array:
    """Events of a run's own code, addresses as distances from main; the places are so, too.

    Functions are bound at the start: how many threads would do so at once, each by its own instructions, is luck.
    """
    bound = {**os.environ, "LD_BIND_NOW": "1"}
    with clew.spawn([called, str(TURNS), str(n_threads)], stdout=DEVNULL, environment=bound) as session:
        session.only("called")
        main = session.find("called!main")
        places = [None if given is None else [main + one for one in given] for given in (activate, deactivate)]
        stream = session.follow(events=events, activate=places[0], deactivate=places[1])
        session.resume()
        found = np.concatenate([np.zeros(0, stream.dtype), *session.events()])
        session.wait(60)
        assert (stream.n_gaps, stream.n_damaged, stream.n_unmatched) == (0, 0, 0)
        assert not session.trace.verify()
    for tid in np.unique(found["thread"]).tolist():
        own = found[found["thread"] == tid]
        assert (own["sequence"] == np.arange(len(own))).all()
    found["address"] -= np.uint64(main)
    return found


def places_of(called: Path) -> dict[str, int]:
    """Places in the program, as distances from main."""
    with clew.spawn([called, "1"], stdout=DEVNULL) as session:
        main = session.find("called!main")
        return {name: session.find(f"called!{name}") - main for name in ("turn", "handle", "descend", "add", "forward")}


def between(events: Array, activate: list[int], deactivate: list[int]) -> Array:
    """What of a thread's events lies between the places, by its instructions."""
    is_open, kept = not activate, np.zeros(len(events), bool)
    opens, closes = (set(np.array(given, np.int64).view(np.uint64).tolist()) for given in (activate, deactivate))
    for at, (kind, address) in enumerate(zip(events["kind"].tolist(), events["address"].tolist(), strict=True)):
        if kind == FlowKind.EXEC:
            is_open = (is_open and address not in closes) or address in opens
        kept[at] = is_open
    return events[kept]


def assert_same(found: Array, expected: Array) -> None:
    assert len(found) == len(expected) > 0
    for name in ("kind", "address", "size", "n_instructions", "depth"):
        assert (found[name] == expected[name]).all(), name


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param({"exec"}, marks=pytest.mark.long),
        pytest.param({"exec", "call", "ret"}, marks=pytest.mark.long),
        {"exec", "call", "ret", "block", "memory"},
    ],
)
def test_what_lies_between_two_functions_is_told(called: Path, kinds: set[str]) -> None:
    places = places_of(called)
    activate, deactivate = [places["handle"]], [places["descend"]]
    found = read_events(called, kinds, activate=activate, deactivate=deactivate)
    expected = between(read_events(called, kinds), activate, deactivate)
    assert_same(found, expected)
    assert (found["address"] == np.uint64(places["handle"] & (1 << 64) - 1)).any()


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))])
def test_places_may_be_inside_of_blocks(called: Path, seed: int) -> None:
    whole = read_events(called, {"exec", "call", "ret"})
    executed = np.unique(whole["address"][whole["kind"] == FlowKind.EXEC]).view(np.int64)
    chosen = np.random.default_rng(seed).permutation(executed)[:6].tolist()
    activate, deactivate = chosen[: 1 + seed % 3], chosen[3 : 4 + seed % 3]
    assert_same(
        read_events(called, {"exec", "call", "ret"}, activate=activate, deactivate=deactivate),
        between(whole, activate, deactivate),
    )
    # Blocks are told from the place on, and up to it.
    blocks = read_events(called, {"block"}, activate=activate, deactivate=deactivate)
    n_instructions = (between(whole, activate, deactivate)["kind"] == FlowKind.EXEC).sum()
    assert blocks["n_instructions"].sum() == n_instructions


@pytest.mark.long
def test_calls_alone_are_told_as_they_are_beside_instructions(called: Path) -> None:
    places = places_of(called)
    whole = read_events(called, {"exec", "call", "ret"})
    for activate, deactivate in (("turn", "handle"), ("add", "forward"), ("forward", "turn")):
        own = [places[activate]], [places[deactivate]]
        expected = between(whole, *own)
        assert_same(
            read_events(called, {"call"}, activate=own[0], deactivate=own[1]),
            expected[expected["kind"] == FlowKind.CALL],
        )


def test_one_place_is_enough(called: Path) -> None:
    places = places_of(called)
    whole = read_events(called, {"exec"})
    assert_same(read_events(called, {"exec"}, activate=[places["handle"]]), between(whole, [places["handle"]], []))
    assert_same(read_events(called, {"exec"}, deactivate=[places["handle"]]), between(whole, [], [places["handle"]]))


def test_each_thread_is_for_itself(called: Path) -> None:
    places = places_of(called)
    own = [places["handle"]], [places["descend"]]
    whole = read_events(called, {"exec"}, n_threads=4)
    found = read_events(called, {"exec"}, activate=own[0], deactivate=own[1], n_threads=4)
    tids = np.unique(found["thread"])
    assert len(tids) == 4
    expected = [between(whole[whole["thread"] == tid], *own) for tid in np.unique(whole["thread"])]
    assert sorted(len(one) for one in expected) == sorted(int((found["thread"] == tid).sum()) for tid in tids)


@pytest.mark.long
def test_places_are_changed_while_it_runs(called: Path) -> None:
    with clew.spawn([called, "1000000000"], stdout=DEVNULL) as session:
        session.only("called")
        add, handle, descend = (session.find(f"called!{name}") for name in ("add", "handle", "descend"))

        received: list[Array] = []
        session.follow(events={"call"})
        session.on_receive(received.append)

        def take(activate: Places | None, deactivate: Places | None) -> set[int]:
            """What is called between two places; called when the process is stopped."""
            session.follow(events={"call"}, activate=activate, deactivate=deactivate)
            n_before = len(received)
            session.resume()
            while len(received) < n_before + 3:
                time.sleep(0.01)
            session.pause()
            session.flush()
            return {int(address) for batch in received[n_before + 1 :] for address in batch["target"]}

        assert {add, handle, descend} <= take(None, None)
        found = take("called!handle", descend)
        assert descend in found and not found & {add, handle}
        found = take(descend, "called!handle")
        assert {add, descend, handle} <= found
        found = take("called!turn", descend)
        assert {add, descend, handle} <= found
        assert {add, handle, descend} <= take(None, None)
        session.kill()


@pytest.mark.long
def test_other_programs_have_no_places(called: Path) -> None:
    with clew.spawn(["sh", "-c", f"{called} 1; exec {called} 1"], stdout=PIPE) as session:
        (thread,) = session.threads
        assert thread.registers is not None
        stream = session.follow(events={"call", "thread"}, activate=thread.registers["rip"] + 1)
        session.resume()
        found = np.concatenate([np.zeros(0, stream.dtype), *session.events()])
        session.wait(60)
    assert set(found["kind"].tolist()) == {FlowKind.THREAD}


def test_what_is_no_place_is_refused(called: Path) -> None:
    with clew.spawn([called, "1"], stdout=DEVNULL) as session:
        add = session.find("called!add")
        with pytest.raises(UsageError, match="same instruction"):
            session.follow(activate="called!add", deactivate=[add, 1])
        with pytest.raises(UsageError, match="no place"):
            session.follow(activate=[])
        with pytest.raises(UsageError, match="no address"):
            session.follow(activate=-1)
        with pytest.raises(ControlError):
            session.follow(activate="called!no_such_function")
        # Any number is a place that nobody comes to; so is the middle of an instruction.
        stream = session.follow(events={"call"}, activate=[0, (1 << 64) - 1, add + 1], deactivate=[1 << 47, add + 2])
        session.resume()
        assert not [batch for batch in session.events() if len(batch)]
        assert stream.n_damaged == 0


def calls_of(program: Path, **options: Any) -> Array:
    """Its calls; `options` are those of `follow`."""
    with clew.spawn([program], mode="full", stdout=DEVNULL) as session:
        stream = session.follow(events={"call"}, **options)
        session.resume()
        batches = list(stream)
        assert session.wait(60) == 0
        assert (stream.n_gaps, stream.n_damaged) == (0, 0)
    return np.concatenate([np.zeros(0, stream.dtype), *batches])


def test_places_may_be_loaded_later() -> None:
    program = next(one for one in catalogue() if one.name == "library_load")
    build_one(program)
    library = Path(program.path).with_name("library_load_library.so")
    (work, _), *_ = load_symbols(library).find_by_name("work")
    whole = calls_of(program.path)
    found = calls_of(program.path, activate="library_load_library.so!work")
    # Where it lies differs from run to run, but for places within pages. The call that leads there is made before.
    told, expected = (calls["target"] & np.uint64(0xFFF) for calls in (found, whole))
    assert len(told) > 100 and (told == expected[-len(told) :]).all()
    assert expected[-len(told) - 1] == np.uint64(int(work) & 0xFFF)
    until = calls_of(program.path, activate="library_load_library.so!work", deactivate="libm.so.6!cos")
    assert 4 < len(until) < len(found)
    assert not len(calls_of(program.path, activate="never_loaded.so!work"))
    assert len(calls_of(program.path, deactivate="never_loaded.so!work")) == len(whole)
