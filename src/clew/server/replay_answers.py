"""What the page asks of time: the timeline of a process, and the replay of its threads.

Runs in the controller. docs/format/container.md lists the arrays. Times are nanoseconds since the recording began.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, Final

import numpy as np

from clew.analysis.order.path_code import ProcessCode, load_process_code
from clew.analysis.order.thread_path import ThreadPath
from clew.analysis.replay.replay import MAX_WINDOW, RECENT, PathReplay, Replay, Sought
from clew.analysis.replay.replay_tags import TagReplay
from clew.analysis.replay.tag_threads import TagThreads
from clew.analysis.replay.thread_times import ThreadTimes, read_path_times
from clew.analysis.replay.timeline import MAX_CELLS, ProcessTimeline, TimelineThread, find_edges
from clew.errors import ClewError, UsageError
from clew.protocol._generated import GapReason
from clew.server.container import encode_container, pack_texts
from clew.server.query import parse_number
from clew.server.served_trace import ServedTrace

__all__ = [
    "answer_events",
    "answer_replay",
    "answer_seek",
    "encode_frames",
    "encode_path",
    "encode_timeline",
    "find_call_position",
]

MAX_EVENTS: Final = 2000
MAX_FRAMES: Final = 256
MAX_COUNTED: Final = 12
_KEPT_REPLAYS: Final = 32
_PAUSE_SECONDS: Final = 0.002
_DONE: Final = object()
_MODE_REASON: Final = "the order was not recorded in mode {}; record with --mode full or region"
_NO_CODE: Final = "no code was recorded, only events of probes"


class ProcessReplays:
    """The timeline of a process and replays of its threads; whoever asks holds the lock.

    What makes a replay quick is made by a thread of its own once `prepare` began it.
    """

    def __init__(self, served: ServedTrace, process_id: int) -> None:
        self._served = served
        self._trace = served.trace
        self._process_id = process_id
        self.graph = served.graph(process_id)
        self.timeline = ProcessTimeline(self.graph, self._read_times)
        self.lock = threading.Lock()
        self._replays: OrderedDict[int, Replay] = OrderedDict()

    def replay(self, tid: int) -> Replay:
        """A thread's replay. Raises UsageError for one that has no order."""
        if tid not in self._replays:
            self._replays[tid] = self._open(tid)
            while len(self._replays) > _KEPT_REPLAYS:
                self._replays.popitem(last=False)
        self._replays.move_to_end(tid)
        return self._replays[tid]

    def prepare(self, tid: int) -> Replay:
        """The same, and begin to make what makes it quick."""
        is_new = tid not in self._replays
        replay = self.replay(tid)
        if is_new:
            threading.Thread(target=self._prepare, args=(replay,), daemon=True).start()
        return replay

    def _prepare(self, replay: Replay) -> None:
        with suppress(ClewError):
            steps = replay.prepare()
            while True:
                with self.lock:
                    if replay not in self._replays.values() or next(steps, _DONE) is _DONE:
                        return
                # A lock goes to whoever comes first, which would be this thread again.
                time.sleep(_PAUSE_SECONDS)

    def prepare_longest(self) -> None:
        """Begin with the thread that did the most, which will be asked for first."""
        ordered = [thread for thread in self.timeline.threads if thread.is_ordered]
        if ordered:
            self.prepare(max(ordered, key=lambda thread: self.timeline.times(thread).length).tid)

    def _open(self, tid: int) -> Replay:
        thread = self.timeline.find(tid)
        if self._trace.mode not in ("full", "region"):
            raise UsageError(_MODE_REASON.format(self._trace.mode))
        if not thread.is_ordered:
            raise UsageError(f"thread {tid}: no path of it was kept")
        times = self.timeline.times(thread)
        if self._trace.mode == "region":
            return TagReplay(self._tags, tid, self.graph, times)
        return PathReplay(self._trace, self._paths[tid], self._code, self.graph, times)

    def _read_times(self, thread: TimelineThread) -> ThreadTimes:
        if self._trace.mode == "region":
            return self._tags.times(thread.tid, thread.start_ns, thread.end_ns)
        path = ThreadPath(self._trace, self._paths[thread.tid], self._code)
        try:
            return read_path_times(path, thread.start_ns, thread.end_ns)
        finally:
            path.stretches.file.close()

    @cached_property
    def _paths(self) -> dict[int, dict[str, Any]]:
        return {row["tid"]: row for row in self._trace.paths.to_pylist() if row["process_id"] == self._process_id}

    @cached_property
    def _code(self) -> ProcessCode:
        return load_process_code(self._trace, self._process_id)

    @cached_property
    def _tags(self) -> TagThreads:
        return TagThreads(self._trace, self._process_id)


@contextmanager
def _hold(served: ServedTrace, process_id: int) -> Iterator[ProcessReplays]:
    # Making it does no more than the graph does; what takes long is done under its own lock.
    served.graph(process_id)
    replays = served.once(("replays", process_id), lambda: ProcessReplays(served, process_id))
    with replays.lock:
        yield replays


def encode_timeline(
    served: ServedTrace, process_id: int, start: int | None, end: int | None, n_bins: int, tids: Sequence[int] | None
) -> bytes:
    """Threads over time, in bins from `start` up to `end`, by default as long as any of them lived."""
    zero = served.start_ns
    with _hold(served, process_id) as replays:
        timeline = replays.timeline
        first = min([thread.start_ns for thread in timeline.threads], default=zero) - zero
        last = max([thread.end_ns - zero for thread in timeline.threads], default=first)
        probed = served.trace.span_of_probes(process_id)
        if probed is not None:
            first, last = min(first, probed[0] - zero), max(last, probed[1] - zero + 1)
        last = max(last, first + 1)
        start, end = first if start is None else start, last if end is None else end
        # Of many threads fewer bins: their number goes with the answer.
        n_bins = min(n_bins, max(MAX_CELLS // max(len(timeline.threads), 1), 1))
        threads = timeline.bin(zero + start, zero + end, n_bins, tids)
        replays.prepare_longest()
        new_code = timeline.new_code(find_edges(zero + start, zero + end, n_bins), tids)
        reason = _MODE_REASON.format(served.trace.mode) if replays.graph.n_blocks else _NO_CODE
    gaps, gap_thread = _join([one.gaps for one in threads])
    ticks, tick_thread = _join([one.ticks for one in threads])
    marks, _ = _join([one.mark for one in threads])
    mark_ns, _ = _join([one.mark_ns for one in threads])
    meta = {
        "process_id": process_id,
        "from": start,
        "to": end,
        "first": first,
        "last": last,
        "bins": n_bins,
        "mode": served.trace.mode,
        "unit": {"full": "block", "region": "tag"}.get(served.trace.mode),
        "reason": None if served.trace.mode in ("full", "region") else reason,
    }
    arrays = pack_texts("name", [one.thread.name for one in threads]) | {
        "tid": np.array([one.thread.tid for one in threads], np.uint32),
        "started": np.array([one.thread.start_ns - zero for one in threads], np.float64),
        "ended": np.array([one.thread.end_ns - zero for one in threads], np.float64),
        "is_ordered": np.array([one.thread.is_ordered for one in threads], np.uint8),
        "length": np.array([one.length for one in threads], np.float64),
        "density": np.concatenate([np.zeros(0), *(one.density for one in threads)]).astype(np.float32),
        "new_code": new_code.astype(np.uint32),
        "thread_new_code": _join([one.new_code for one in threads])[0].astype(np.uint32),
        "gap_thread": gap_thread,
        "gap_from": (gaps["start_ns"] - zero).astype(np.float64) if len(gaps) else np.zeros(0),
        "gap_to": (gaps["end_ns"] - zero).astype(np.float64) if len(gaps) else np.zeros(0),
        "gap_covers": _join([one.gap_ns for one in threads])[0].astype(np.float64),
        "gap_executions": gaps["executions"].astype(np.float64) if len(gaps) else np.zeros(0),
        "gap_reason": gaps["reason"].astype(np.uint8) if len(gaps) else np.zeros(0, np.uint8),
        "tick_thread": tick_thread,
        "tick_time": (ticks["ns"] - zero).astype(np.float64) if len(ticks) else np.zeros(0),
        "tick_kind": ticks["kind"].astype(np.uint8) if len(ticks) else np.zeros(0, np.uint8),
        "tick_value": ticks["value"].astype(np.int32) if len(ticks) else np.zeros(0, np.int32),
        "tick_count": _join([one.tick_counts for one in threads])[0].astype(np.uint32),
        "mark_end": np.cumsum([len(one.mark) for one in threads]).astype(np.uint32),
        "mark_time": (mark_ns - zero).astype(np.float64),
        "mark_position": marks.astype(np.float64),
    }
    return encode_container("timeline", meta, arrays)


def answer_events(
    served: ServedTrace, process_id: int, start: int, end: int, tids: Sequence[int] | None
) -> dict[str, Any]:
    """Signals, faults and system calls between two times, by name."""
    with _hold(served, process_id) as replays:
        found, omitted = replays.timeline.events(served.start_ns + start, served.start_ns + end, MAX_EVENTS, tids)
    return {"events": [{**row, "time": row["time"] - served.start_ns} for row in found], "omitted": omitted}


def answer_replay(served: ServedTrace, process_id: int, tid: int, position: int) -> dict[str, Any]:
    """A thread in front of a position."""
    with _hold(served, process_id) as replays:
        return _describe(served, replays.prepare(tid), tid, position)


def answer_seek(served: ServedTrace, process_id: int, tid: int, words: dict[str, str], position: int) -> dict[str, Any]:
    """A thread where something is, looked for from a position on.

    `words` has one of: `time`; `step`, a number; `block`, an index; `what`, as Sought has it. `back`: the other way.
    What is not there leaves the position as it is, and `found` is false.
    """
    back = words.get("back") in ("1", "true")
    with _hold(served, process_id) as replays:
        replay = replays.prepare(tid)
        found: int | None
        if "time" in words:
            found = replay.find_time(served.start_ns + parse_number("time", words["time"]))
        elif "step" in words:
            found = replay.step(position, parse_number("step", words["step"]))
        elif "block" in words:
            block = parse_number("block", words["block"])
            if not 0 <= block < replays.graph.n_blocks:
                raise UsageError(f"block: there are {replays.graph.n_blocks}")
            found = replay.find_block(block, position, back=back)
        else:
            what = words.get("what", "")
            if what not in list(Sought):
                raise UsageError("a seek needs time, step, block or what (call, syscall, signal)")
            found = replay.find(Sought(what), position, back=back)
        state = _describe(served, replay, tid, position if found is None else found)
        return {**state, "found": found is not None}


def find_call_position(
    served: ServedTrace, process_id: int, tid: int, *, number: int | None, position: int | None, time_ns: int
) -> int | None:
    """Where a thread made a call: its system call `number` (region: the row of its tag), or one at `position`.

    As near as `time_ns` tells where neither is known. None for a thread without order.
    """
    with _hold(served, process_id) as replays:
        if not any(thread.tid == tid and thread.is_ordered for thread in replays.timeline.threads):
            return None
        replay = replays.prepare(tid)
        if number is not None:
            return replay.find_system_call(number)
        return replay.find_time(time_ns) if position is None else replay.settle(position)


def encode_path(served: ServedTrace, process_id: int, tid: int, start: int, count: int) -> bytes:
    """Blocks that a thread executed from a position on, at most MAX_WINDOW, none from beyond a gap."""
    if not 0 <= count <= MAX_WINDOW:
        raise UsageError(f"count: at most {MAX_WINDOW}")
    with _hold(served, process_id) as replays:
        replay = replays.prepare(tid)
        window = replay.window(start, count)
    meta = {"thread": tid, "start": window.start, "next": window.next, "length": replay.length}
    return encode_container("path", meta, {"block": window.blocks})


def encode_frames(served: ServedTrace, process_id: int, tid: int, start: int, stride: int, n_frames: int) -> bytes:
    """Positions so far apart, with the last blocks executed in front of each: a path in fast motion."""
    if not 0 < n_frames <= MAX_FRAMES or stride <= 0:
        raise UsageError(f"frames: 1 to {MAX_FRAMES}, and a stride of 1 at least")
    with _hold(served, process_id) as replays:
        replay = replays.prepare(tid)
        positions, blocks = replay.frames(start, stride, n_frames, RECENT)
    arrays = {
        "position": np.array(positions, np.float64),
        "block": np.concatenate([np.zeros(0, np.uint32), *blocks]),
        "block_end": np.cumsum([len(one) for one in blocks]).astype(np.uint32),
    }
    return encode_container("frames", {"thread": tid, "length": replay.length}, arrays)


def _describe(served: ServedTrace, replay: Replay, tid: int, position: int) -> dict[str, Any]:
    state = replay.state(position)
    calls = None
    if state.calls is not None:
        calls = [{"block": call.block, "returns_to": hex(call.return_address)} for call in state.calls]
    gap = None
    if state.gap is not None:
        counted = replay.read_counts(state.gap, MAX_COUNTED) if isinstance(replay, TagReplay) else []
        gap = {
            "start": int(state.gap["start"]),
            "end": int(state.gap["end"]),
            "from": int(state.gap["start_ns"]) - served.start_ns,
            "to": int(state.gap["end_ns"]) - served.start_ns,
            "executions": int(state.gap["executions"]),
            "reason": GapReason(state.gap["reason"]).name.lower(),
            "counts": [{"block": block, "executions": executions} for block, executions in counted],
        }
    return {
        "thread": tid,
        "position": state.position,
        "length": replay.length,
        "block": state.block,
        "instruction": state.instruction,
        "time": state.time_ns - served.start_ns,
        "calls": calls,
        "calls_omitted": state.n_calls_omitted,
        "recent": state.recent.view(np.int32).tolist(),
        "coming": state.coming.view(np.int32).tolist(),
        "gap": gap,
    }


def _join(parts: list[Any]) -> tuple[Any, Any]:
    """Arrays one after the other, and which one each element is of (u32)."""
    if not parts:
        return np.zeros(0), np.zeros(0, np.uint32)
    lengths = [len(part) for part in parts]
    return np.concatenate(parts), np.repeat(np.arange(len(parts), dtype=np.uint32), lengths)
