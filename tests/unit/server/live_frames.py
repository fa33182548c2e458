"""Frames of made-up recordings, for tests of what the server sends."""

from __future__ import annotations

import random
from typing import Any

from clew.recording.assembly.images.images import ImageFiles
from clew.recording.live.process import LiveProcess
from clew.server.live_frames import encode_frame
from clew.server.live_graph import LiveGraph
from tests.unit.recording.live_journal import StandInCounters, make_frames
from tests.unit.recording.simulate import make_runtime

__all__ = ["MadeUpRecording", "encode_some_frame"]


class MadeUpRecording:
    """A made-up program that is recorded, and the graph that is made of it; `advance` is a round of the server."""

    def __init__(self, seed: int, **options: Any) -> None:
        raw = make_runtime(seed, **options).raw_process()
        self._rng = random.Random(seed)
        self.process = LiveProcess(0, {})
        self.counters = StandInCounters(raw)
        self.process.counters = self.counters  # type: ignore[assignment]
        self._frames = make_frames(raw, self._rng)
        self._n = len(self._frames)
        self.graph = LiveGraph(self.process, ImageFiles(), raw.start_ns)
        self.sequence = 0

    @property
    def is_over(self) -> bool:
        return not self._frames

    def advance(self) -> None:
        """Some frames of the journal come, and counters rise."""
        for _ in range(min(self._rng.randint(0, 8), len(self._frames))):
            self.process.take(self._frames.pop(0))
        if self.process.counters is not None:
            self.counters.rise(1 - len(self._frames) / self._n)
        self.sequence += 1
        self.graph.update(self.sequence)

    def encode(self, since: int) -> bytes:
        """What changed after `since`."""
        meta = {"epoch": "e", "sequence": self.sequence, "process": 0, "processes": None}
        meta |= {"name": "n", "mode": "counts", "command": ["c"], "state": "running", "reason": "", "trouble": ""}
        return encode_frame(self.graph, since, meta | {"elapsed_ns": 1})


def encode_some_frame() -> bytes:
    """A whole picture in which there is some of everything."""
    recording = MadeUpRecording(5)
    while not recording.is_over:
        recording.advance()
    return recording.encode(-1)
