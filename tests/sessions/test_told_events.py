"""Events of system calls, signals, exceptions, threads and images: each is told once, in its thread's order."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import clew
from clew.protocol.codec import FlowKind
from tests.programs.build import SOURCES, build_plain

N = 40
GETPPID, GETUID, SIGUSR1, SIGSEGV = 110, 102, 10, 11


@pytest.fixture(scope="module")
def told() -> Path:
    """The program of tests/programs/sessions/told.c."""
    return build_plain(SOURCES / "sessions/told.c", "-O1", "-g", "-pthread")


@pytest.mark.parametrize(
    ("others", "n_threads"),
    [
        pytest.param(set(), 1, id="alone-1"),
        pytest.param({"call", "ret", "block", "exec"}, 4, id="beside-all-4"),
        pytest.param(set(), 4, id="alone-4", marks=pytest.mark.long),
        pytest.param({"call", "ret", "block", "exec"}, 1, id="beside-all-1", marks=pytest.mark.long),
    ],
)
def test_what_the_kernel_does_is_told(told: Path, n_threads: int, others: set[str]) -> None:
    with clew.spawn([told, str(N), str(n_threads)], stdout=subprocess.DEVNULL) as session:
        session.follow(events={"syscall", "signal", "exception", "thread"} | others, time=True)
        handlers = {SIGUSR1: session.find("on_signal"), SIGSEGV: session.find("on_fault")}
        faulting = session.find("faulting")
        session.resume()
        batches = list(session.events())
        assert session.wait(60) == 0
        assert (session.events().n_gaps, session.events().n_damaged) == (0, 0)
    rows = np.concatenate(batches)
    for tid in np.unique(rows["thread"]):
        own = rows[rows["thread"] == tid]
        assert (own["sequence"] == np.arange(len(own))).all() and (np.diff(own["time"].astype(np.int64)) >= 0).all()
        of = {kind: own[own["kind"] == kind] for kind in FlowKind}
        calls = of[FlowKind.SYSCALL]["target"]
        assert [int(np.count_nonzero(calls == number)) for number in (GETPPID, GETUID)] == [N, N]
        assert of[FlowKind.SIGNAL]["target"].tolist() == [SIGUSR1] * N
        assert of[FlowKind.EXCEPTION]["target"].tolist() == [SIGSEGV] * N
        assert (of[FlowKind.EXCEPTION]["address"] == faulting).all()
        thread = of[FlowKind.THREAD]
        assert thread["target"].tolist() == [1, 0]
        assert (own["kind"][0], own["kind"][-1]) == (FlowKind.THREAD, FlowKind.THREAD)
        if others:
            assert_in_order(own, handlers)
    assert len(np.unique(rows["thread"])) == n_threads


def assert_in_order(own: np.ndarray, handlers: dict[int, int]) -> None:
    """Behind a signal comes its handler; a system call stands behind the block that it ends."""
    kinds, at = own["kind"], own["address"]
    executed = np.flatnonzero(kinds == FlowKind.EXEC)
    for index in np.flatnonzero((kinds == FlowKind.SIGNAL) | (kinds == FlowKind.EXCEPTION)).tolist():
        following = executed[np.searchsorted(executed, index)]
        assert at[following] == handlers[int(own["target"][index])]
    for index in np.flatnonzero(kinds == FlowKind.SYSCALL).tolist():
        before = executed[np.searchsorted(executed, index) - 1]
        assert at[before] == at[index] and own["size"][before] == 2


def test_images_are_told_as_they_are_mapped(told: Path) -> None:
    with clew.spawn([told, "1"], stdout=subprocess.DEVNULL) as session:
        session.follow(events={"image"})
        seen = []

        @session.on_call("on_signal")
        def look(call: object) -> None:
            seen.extend(session.images)

        session.resume()
        rows = np.concatenate(list(session.events()))
        session.wait(60)
    assert (rows["kind"] == FlowKind.IMAGE).all()
    mapped = set(rows["address"].tolist())
    libc = next(image for image in seen if image.name.startswith("libc"))
    assert libc.start in mapped and look.n_calls == 1
