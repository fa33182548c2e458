"""A recording that goes on, as it is watched: reads what the recorder tells and writes, and keeps the pictures.

Runs in the controller, in the live viewer's process, in two threads: one hears the recorder, one reads the journal and
works pictures out, at its own pace: at most `MOST_PER_SECOND` times a second, and a third of the time at most. Nothing
is worked out that nobody watches.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from clew.errors import ClewError
from clew.process.shared_layout import SharedLayout
from clew.protocol._constants import Mode
from clew.recording.assembly.images.images import ImageFiles
from clew.recording.assembly.tables.tables import clean_text
from clew.recording.journal.frames import Frame, FrameKind
from clew.recording.journal.tail import JournalTail
from clew.recording.live.counters import LiveCounters
from clew.recording.live.feed import Told, iter_told
from clew.recording.live.process import LiveProcess
from clew.server.live_frames import encode_frame
from clew.server.live_graph import LiveGraph
from clew.server.served_trace import ServedTrace

__all__ = ["LiveSession"]

MOST_PER_SECOND: Final = 30
UNWATCHED_SECONDS: Final = 0.1
REST: Final = 2.0
"""So many times as long as working out took is waited before it is done again."""
MAX_ENDED: Final = 32
"""Processes that ended and that nobody watches are kept up to so many."""
MAX_GRAPHS: Final = 4
"""Graphs that nobody watches are kept up to so many: a page whose connection broke comes back soon."""
MAX_LISTED: Final = 300
MAX_WATCHED_DESCRIPTORS: Final = 256
_OUTCOMES: Final = ("ended", "published", "failed")


class LiveSession:
    """The recording into `directory`, told of by `connection`; `served` gets its trace once it is published.

    `journal` is a descriptor of its journal, which is read to its end also when it was removed meanwhile.

    `on_news` is called, from a thread of this, whenever there may be something new to be told; `on_recorder_gone` when
    nobody is at the connection's other end any more.
    """

    def __init__(self, directory: Path, connection: socket.socket, journal: int, served: list[ServedTrace]) -> None:
        self.directory = directory
        self.epoch = secrets.token_hex(8)
        self.sequence = 0
        self.state = "running"
        self.reason = ""
        self.on_news: Callable[[], None] = lambda: None
        self.on_recorder_gone: Callable[[], None] = lambda: None
        self._connection = connection
        self._served = served
        self._tail = JournalTail(journal)
        self._described: dict[str, Any] = {"mode": int(Mode.COUNTS), "command": [], "start_ns": time.time_ns()}
        self._processes: dict[int, LiveProcess] = {}
        self._listed: dict[int, dict[str, Any]] = {}
        self._list_changed = 0
        self._graphs: dict[int, LiveGraph] = {}
        self._watched: Counter[int] = Counter()
        self._files = ImageFiles()
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._auto = -1
        self._told_outcome = ""

    def start(self) -> None:
        """Begin to listen and to read, in threads that end with this process."""
        threading.Thread(target=self._hear, name="feed", daemon=True).start()
        threading.Thread(target=self._work, name="pictures", daemon=True).start()

    @property
    def name(self) -> str:
        return self.directory.resolve().name

    def watch(self, number: int) -> None:
        """Somebody looks at process `number`, or with -1 at the one that does most."""
        with self._lock:
            self._watched[number] += 1
        self._wake.set()

    def unwatch(self, number: int) -> None:
        """Somebody looks at it no more."""
        with self._lock:
            self._watched[number] -= 1
            self._watched += Counter()
            self._forget()

    def encode(self, number: int, epoch: str, since: int, before: int) -> tuple[bytes, int, int]:
        """What changed of process `number` (-1: the one that does most) after `since` of `epoch`.

        `before` is the process that was told of until then; of another one, and of another epoch, all is told. A frame,
        its number in the sequence, and the process that it is about.
        """
        with self._lock:
            chosen = self._choose() if number < 0 else number
            graph = self._graphs.get(chosen)
            if graph is None or epoch != self.epoch or chosen != before or not graph.born <= since <= self.sequence:
                since = -1
            meta = self._describe(chosen, since) | {
                "trouble": "" if graph is None else graph.trouble or graph.process.trouble
            }
            return encode_frame(graph, since, meta), self.sequence, chosen if graph is not None else -1

    def _describe(self, process: int, since: int) -> dict[str, Any]:
        return {
            "name": self.name,
            "mode": Mode(self._described["mode"]).name.lower(),
            "command": [clean_text(str(word)) for word in self._described["command"]],
            "epoch": self.epoch,
            "sequence": self.sequence,
            "process": process,
            "state": self.state,
            "reason": self.reason,
            "elapsed_ns": time.time_ns() - int(self._described["start_ns"]),
            "processes": self._list_processes() if self._list_changed > since else None,
        }

    def _list_processes(self) -> list[dict[str, Any]]:
        rows = list(self._listed.values())
        rows.sort(key=lambda row: (not row["is_running"], -row["number"]))
        return sorted(rows[:MAX_LISTED], key=lambda row: int(row["number"]))

    def _choose(self) -> int:
        """The process that ran most code, of those that run; the one before, unless it ended or another has more."""
        running = {number: one.n_records for number, one in self._processes.items() if one.is_running}
        known = self._processes.get(self._auto)
        if running:
            best = max(running, key=lambda number: running[number])
            if self._auto not in running or running[best] > 2 * running[self._auto]:
                self._auto = best
        elif known is None and self._processes:
            self._auto = max(self._processes, key=lambda number: self._processes[number].n_records)
        return self._auto

    def _hear(self) -> None:
        for told in iter_told(self._connection):
            with self._lock:
                if told.what in _OUTCOMES:
                    self._told_outcome = told.what
                    self.reason = clean_text(str(told.content.get("reason", "")))
                else:
                    self._follow(told)
            self._wake.set()
        # The recorder is gone, and whoever started both with it.
        self.on_recorder_gone()

    def _follow(self, told: Told) -> None:
        content = told.content
        process = self._process(int(content["number"]))
        layout = SharedLayout(content["max_threads"], content["ring_bytes"], content["counter_bytes"])
        counters = LiveCounters(told.descriptor, content["offset"], layout)
        n_open = sum(one.counters is not None for one in self._processes.values())
        if process.end is not None or n_open >= MAX_WATCHED_DESCRIPTORS:
            counters.close()
        else:
            process.counters = counters

    def _process(self, number: int) -> LiveProcess:
        process = self._processes.get(number)
        if process is None:
            process = self._processes[number] = LiveProcess(number, self._processes)
        return process

    def _work(self) -> None:
        while True:
            started = time.monotonic()
            with self._lock:
                is_over = self._round()
            self.on_news()
            if is_over:
                return
            time.sleep(max(1 / MOST_PER_SECOND, REST * (time.monotonic() - started)))
            if not self._watched:
                self._wake.wait(UNWATCHED_SECONDS)
            self._wake.clear()

    def _round(self) -> bool:
        """Take what came, work out what is watched; whether nothing more will come."""
        # First what was told, then what was written: when the end is told all is written.
        outcome = self._told_outcome
        with contextlib.suppress(OSError):
            for frame in self._tail.iter_new():
                self._take(frame)
        self.sequence += 1
        is_changed = self._update_graphs(is_last=bool(outcome))
        if outcome and outcome != self.state:
            self._end(outcome)
            is_changed = True
        if not is_changed and self._list_changed != self.sequence:
            self.sequence -= 1
        return self.state in ("published", "failed")

    def _take(self, frame: Frame) -> None:
        if frame.kind == FrameKind.SESSION:
            self._described = json.loads(bytes(frame.payload))
            return
        process = self._process(frame.process)
        try:
            process.take(frame)
        except Exception as error:
            process.trouble = f"{type(error).__name__}: {error}"[:300]
        if frame.kind in (FrameKind.PROCESS, FrameKind.PROCESS_END):
            self._list(process)

    def _list(self, process: LiveProcess) -> None:
        start, end = process.start or {}, process.end
        self._list_changed = self.sequence + 1
        command = " ".join(start.get("command", []))
        self._listed[process.number] = {
            "number": process.number,
            "pid": int(start.get("pid", 0)),
            "parent_pid": int(start.get("parent_pid", 0)),
            "executable": clean_text(str(start.get("executable", "")))[-300:],
            "command": clean_text(command[:300]),
            "mode": process.mode.name.lower(),
            "is_running": end is None,
            "is_kept": True,
        }
        if len(self._listed) > 2 * MAX_LISTED:
            kept = {row["number"] for row in self._list_processes()}
            self._listed = {number: row for number, row in self._listed.items() if number in kept}
        self._forget()

    def _forget(self) -> None:
        """Keep of the processes that ended and that nobody watches the last ones only."""
        watched = {*self._watched, self._auto}
        ended = [number for number, one in self._processes.items() if one.end is not None and number not in watched]
        for number in ended[:-MAX_ENDED]:
            del self._processes[number]
            self._graphs.pop(number, None)
            if number in self._listed:
                self._listed[number]["is_kept"] = False
                self._list_changed = self.sequence + 1

    def _update_graphs(self, *, is_last: bool) -> bool:
        """Bring what is watched up to now; the last time also what whoever watched it may come back to."""
        numbers = {self._choose() if number < 0 else number for number in self._watched}
        numbers |= self._graphs.keys() if is_last else set()
        is_changed = False
        for number in numbers & self._processes.keys():
            graph = self._graphs.get(number)
            if graph is None:
                graph = LiveGraph(self._processes[number], self._files, int(self._described["start_ns"]), self.sequence)
                self._graphs[number] = graph
            try:
                is_changed |= graph.update(self.sequence)
            except Exception as error:
                # What the target wrote makes no sense; what it writes next may.
                graph.trouble = f"{type(error).__name__}: {error}"[:300]
        for number in [number for number in self._graphs if number not in numbers][:-MAX_GRAPHS]:
            # Whoever comes back to it is told all of it.
            del self._graphs[number]
        return is_changed

    def _end(self, outcome: str) -> None:
        if outcome == "published":
            try:
                self._served.append(ServedTrace(self.directory, len(self._served)))
            except ClewError as error:
                outcome, self.reason = "failed", error.message
        self.state = outcome
        if outcome != "ended":
            for process in self._processes.values():
                process.stop_reading()
            self._tail.close()
