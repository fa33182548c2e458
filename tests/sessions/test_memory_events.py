"""Memory events: what threads read and write is told, each access once, with its value, whatever comes in between."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import clew
from clew import AccessKind, FlowKind
from clew.protocol.codec_layouts import FLOW_EVENT, VALUE_EVENT
from tests.programs.build import SOURCES, build_plain

Array = npt.NDArray[Any]
N_ROUNDS = 25


@pytest.fixture(scope="module")
def written() -> Path:
    """The program of tests/programs/sessions/written.c."""
    return build_plain(SOURCES / "sessions/written.c", "-O1", "-fno-tree-vectorize", "-g", "-pthread")


def check(stream: clew.EventStream) -> None:
    assert (stream.n_dropped, stream.n_gaps, stream.n_damaged, stream.n_unmatched) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("others", "n_threads"),
    [
        pytest.param(set(), 1, id="alone-1"),
        pytest.param({"call", "ret", "block", "exec"}, 4, id="beside-all-4"),
        pytest.param(set(), 4, id="alone-4", marks=pytest.mark.long),
        pytest.param({"call", "ret", "block", "exec"}, 1, id="beside-all-1", marks=pytest.mark.long),
    ],
)
def test_all_that_threads_do_with_memory_is_told(written: Path, n_threads: int, others: set[str]) -> None:
    with clew.spawn([written, str(N_ROUNDS), str(n_threads)], stdout=subprocess.PIPE) as session:
        table, ticks, peek = (session.find(name) for name in ("table", "ticks", "peek"))
        session.follow(events={"memory", "signal", "exception"} | others)
        session.resume()
        rows = np.concatenate(list(session.events()))
        assert session.wait(60) == 0
        check(session.events())
        assert session.stdout is not None
        total, n_ticks = map(int, session.stdout.read().split())
    assert rows.dtype == VALUE_EVENT and total == 20 * 77
    memory = rows[rows["kind"] == FlowKind.MEMORY]
    writes = memory[memory["access"] == AccessKind.WRITE]
    for number in range(n_threads):
        start = table + number * 8192
        own = writes[(writes["target"] >= start) & (writes["target"] < start + 8192)]
        place = np.tile(np.arange(1024, dtype=np.uint64), N_ROUNDS)
        rounds = np.repeat(np.arange(N_ROUNDS, dtype=np.uint64), 1024)
        assert (own["target"] == np.uint64(start) + place * np.uint64(8)).all()
        assert (own["value"] == (np.uint64(number << 32) | rounds << np.uint64(16)) + place).all()
        assert len(np.unique(own["thread"])) == 1 and (own["size"] == 8).all()
    # Each tick reads the number and writes it, in whatever thread it comes.
    ticked = memory[memory["target"] == ticks]
    added = ticked[ticked["access"] != AccessKind.READ]["value"]
    assert len(added) == n_ticks // 3 and (len(added) == 0 or int(added.max()) == n_ticks)
    # What faulted is told once, when it is done.
    hidden = memory[(memory["address"] >= peek) & (memory["address"] < peek + 16) & (memory["value"] == 77)]
    assert len(hidden) == 20
    assert (rows["kind"] == FlowKind.EXCEPTION).sum() == 20


@pytest.mark.long
def test_accesses_are_asked_for_while_it_runs(written: Path) -> None:
    with clew.spawn([written, "100000000", "2"], stdout=subprocess.DEVNULL) as session:
        stream = session.follow(events={"call"})
        session.resume()
        for asked in ("memory", "call", "memory", "call"):
            session.follow(events={asked})
            wanted = FlowKind[asked.upper()]
            batch = stream.take(30)
            while batch is not None and wanted not in batch["kind"]:
                batch = stream.take(30)
            assert batch is not None
        assert (stream.n_damaged, stream.n_unmatched) == (0, 0)
        session.kill()


def test_what_is_in_the_buffers_is_told_when_it_is_asked_for(written: Path) -> None:
    with clew.spawn([written, "3", "1"], stdout=subprocess.DEVNULL) as session:
        table = session.find("table")
        stream = session.follow(events={"memory"})
        told: list[Array] = []
        counts: list[int] = []

        @session.on_return("fill")
        def look(call: object) -> None:
            session.flush()
            told.append(stream.take_waiting())
            rows = np.concatenate(told)
            counts.append(int(((rows["target"] >= table) & (rows["target"] < table + 8192)).sum()))

        session.resume()
        session.wait(60)
        check(stream)
    assert counts == [1024, 2048, 3072]


def test_what_is_dropped_is_counted(written: Path) -> None:
    with clew.spawn([written, "200", "2"], stdout=subprocess.DEVNULL) as session:
        stream = session.follow(events={"memory"}, queue_batches=1, on_full="drop")
        session.resume()
        session.wait(60)
        time.sleep(0.5)
        n_taken = sum(len(batch) for batch in stream)
        total = stream.n_received + stream.n_dropped
        assert n_taken == stream.n_received < total and stream.n_unmatched == 0
    assert total > 2 * 200 * 1024


def test_events_are_parsed_with_their_values(written: Path) -> None:
    with clew.spawn([written, "1", "1"], stdout=subprocess.DEVNULL) as session:
        table = session.find("table")
        stream = session.follow(events={"memory"})
        session.resume()
        rows = np.concatenate(list(stream))
    own = rows[rows["target"] == table + 80]
    (event,) = clew.parse(own)
    assert event == ("memory", int(own["address"][0]), table + 80, 8, 10, "write")
    assert clew.parse(own.tobytes(), dtype=VALUE_EVENT) == [event]
    with pytest.raises(clew.ClewError, match="of 48 bytes"):
        clew.parse(own.tobytes(), dtype=FLOW_EVENT)
