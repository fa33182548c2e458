"""Events are made of whatever comes, however little at a time, and of what a hostile target writes."""

from __future__ import annotations

import random
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from clew.dataclass import replace
from clew.protocol._generated import PATH_CHUNK_RECORD, RECORD_BYTES, RecordKind
from clew.protocol.codec import FlowKind
from clew.protocol.codec_layouts import FLOW_EVENT
from clew.recording.options.record_options import parse_options
from clew.recording.session.launched import Launch
from clew.sessions.events.decoder import Decoder
from clew.sessions.events.event_sink import EventSink, Told, ToldQueue, What
from clew.sessions.events.event_stream import EventStream, Wanted, parse_kinds
from clew.sessions.session import Session
from clew.sessions.streams import Streams

Array = npt.NDArray[Any]
KINDS = parse_kinds(["call", "ret", "block", "exec"])
SHORT = 40


class Recorded(ToldQueue):
    """Keeps what a sink tells."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[Told] = []

    def put(self, told: Any) -> None:
        if isinstance(told, Told):
            self.all.append(told)
        super().put(told)


@pytest.fixture(scope="module")
def told(called: Path) -> list[Told]:
    """What a program of two threads told of its paths."""
    queue, sink = Recorded(), EventSink()
    sink.ask(queue)
    options = replace(parse_options(Path(), mode="full"), sinks=[sink])
    streams = Streams(None, DEVNULL, None)

    def launch() -> Launch:
        return Launch([str(called), str(SHORT), "2"], streams=streams.by_number, pause_seconds=0.0)

    with Session(launch, options, is_spawned=False, streams=streams) as session:
        session.wait(60)
        assert session.trace.summary()
    return queue.all


def read(told: list[Told], pauses: set[int]) -> tuple[Array, EventStream]:
    """The events that are made of it, if what came is read behind each of `pauses` (indices)."""
    queue = ToldQueue()
    stream = EventStream(Wanted(KINDS), 1 << 20, drops=False)
    decoder = Decoder(queue, stream, has_time=False)
    for at, one in enumerate(told):
        queue.put(one)
        if at in pauses:
            assert decoder.flush().wait(30)
    queue.put(None)
    decoder.join()
    return np.concatenate([np.zeros(0, FLOW_EVENT), *stream]), stream


def by_thread(events: Array) -> dict[int, bytes]:
    return {tid: events[events["thread"] == tid].tobytes() for tid in np.unique(events["thread"]).tolist()}


def split(told: list[Told], chance: random.Random) -> list[Told]:
    """The same, records one by one or some at a time; what begins with a head stays together with what continues it."""
    parts: list[Told] = []
    for one in told:
        if one.what != What.RECORDS:
            parts.append(one)
            continue
        rows = np.frombuffer(one.content, np.uint8).reshape(-1, RECORD_BYTES)
        at = start = 0
        while at < len(rows):
            kind = int(rows[at, :2].view("<u2")[0])
            if kind == RecordKind.PATH_CHUNK:
                at += 1 + int(rows[at].view(PATH_CHUNK_RECORD)[0]["rows"])
            else:
                at += 1
                while at < len(rows) and int(rows[at, :2].view("<u2")[0]) == RecordKind.CONTINUATION:
                    at += 1
            if chance.random() < 0.2 or at >= len(rows):
                parts.append(Told(one.process, one.what, one.stream, rows[start:at].tobytes()))
                start = at
    return parts


@pytest.mark.long
def test_events_are_the_same_however_they_come(told: list[Told]) -> None:
    whole, stream = read(told, set())
    assert (stream.n_gaps, stream.n_damaged) == (0, 0)
    assert (whole["kind"] == FlowKind.CALL).sum() > 3 * SHORT
    for seed in range(6):
        chance = random.Random(seed)
        parts = split(told, chance)
        pauses = {at for at in range(len(parts)) if chance.random() < 0.1}
        events, stream = read(parts, pauses)
        assert by_thread(events) == by_thread(whole), f"seed {seed}"
        assert stream.n_damaged == 0


@pytest.mark.parametrize("n_seeds", [15, pytest.param(60, marks=pytest.mark.long)])
def test_nothing_that_a_target_writes_does_harm(told: list[Told], n_seeds: int) -> None:
    n_damaged = 0
    for seed in range(n_seeds):
        chance = random.Random(seed)
        spoiled = []
        for one in told:
            content = one.content
            if isinstance(content, bytes) and content and chance.random() < 0.3:
                data = bytearray(content)
                for _ in range(chance.randrange(1, 20)):
                    data[chance.randrange(len(data))] = chance.randrange(256)
                content = bytes(data[: len(data) // 64 * 64] if one.what == What.RECORDS else data)
            spoiled.append(Told(one.process, one.what, one.stream, content))
        if chance.random() < 0.3:
            del spoiled[chance.randrange(1, len(spoiled)) :]
        _, stream = read(spoiled, {len(spoiled) // 2})
        n_damaged += stream.n_damaged
    assert n_damaged > 0
