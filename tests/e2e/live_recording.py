"""Runs `clew record --view` for the tests, and says what a finished trace has of a process as a live picture has it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clew.address import Pid
from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.trace import Trace
from clew.recording.control.client import ControlClient
from tests.e2e.attaching import LIMIT_SECONDS
from tests.e2e.live_client import LivePicture
from tests.e2e.runs import Command, clew_command, start
from tests.programs.build import SOURCES, build_plain

__all__ = ["LiveRecording", "build_new_code", "describe_picture", "describe_trace"]

_ADDRESS = re.compile(r"clew: live at (http://127\.0\.0\.1:\d+/#token=[\w-]{20,}&live=1)\n")


class LiveRecording:
    """A recording with a live view. `url` is where to look; `process` is clew's."""

    def __init__(self, command: Command, trace: Path, *options: str, words: Sequence[str | Path] = ("record",)) -> None:
        self.trace = trace
        # Not a pipe: nobody reads it while it runs.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        recorder = clew_command(*words, "--view", "--port", "0", "--no-browser", "-o", trace, *options, *command)
        self.process = start(recorder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said)
        limit = time.monotonic() + LIMIT_SECONDS
        while (found := _ADDRESS.search(self.said)) is None:
            if self.process.poll() is not None or time.monotonic() > limit:
                said = self.said
                self.kill()
                raise RuntimeError(f"no live view: {said}")
            time.sleep(0.02)
        self.url = found[1]

    @property
    def said(self) -> str:
        """All that clew said so far."""
        self._said.seek(0)
        return self._said.read().decode(errors="replace")

    def say(self, line: str) -> None:
        """A line for the program."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def hear(self) -> str:
        """A line from the program."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().rstrip("\n")

    def close_input(self) -> None:
        """The program has nothing more to read."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def end_pause(self) -> None:
        """The program, which waits at its start, may run now."""
        ControlClient.of_recorder(Pid(self.process.pid), Pid(0)).do("continue")

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """End the viewer, and clew with it: its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(LIMIT_SECONDS)

    def kill(self) -> None:
        """Whatever is left ends now: clew, and the program, which runs on without it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        self._said.close()


Described = tuple[Counter[Any], Counter[Any], Counter[Any]]


def describe_trace(path: Path, process: int) -> Described:
    """Blocks and edges with their counts, and functions with their first callers, of a process of a trace."""
    trace = Trace(path)
    graph = ProcessGraph(trace, process)
    counts = graph.count()
    of = [graph.names[one] for one in graph.function.tolist()]
    numbers = zip(
        graph.app_pc.tolist(),
        graph.code_version.tolist(),
        graph.size_bytes.tolist(),
        graph.n_instructions.tolist(),
        graph.exit_kind.tolist(),
        of,
        counts.blocks.tolist(),
        strict=True,
    )
    named = [*zip(graph.app_pc.tolist(), graph.code_version.tolist(), strict=True), None]
    edges = zip(
        *([named[one] for one in ends.tolist()] for ends in (graph.source, graph.target, graph.callee)),
        graph.kind.tolist(),
        counts.edges.tolist(),
        strict=True,
    )
    entries = graph.app_pc[graph.entry_block].tolist()
    places = [*zip(graph.names, entries, strict=True), None]
    functions = zip(
        *(graph.names, graph.offset.tolist(), entries),
        [places[caller] for caller in graph.caller.tolist()],
        graph.depth.tolist(),
        strict=True,
    )
    return Counter(numbers), Counter(edges), Counter(functions)


def describe_picture(picture: LivePicture) -> Described:
    """The same of a picture."""
    rows, counts = picture.rows, picture.counts
    blocks: Counter[Any] = Counter()
    named: dict[int, Any] = {-1: None}
    known = set()
    for number, row in rows["block"].items():
        name = rows["function"][row["function"]]["name"]
        named[number] = row["address"], row["code_version"]
        known.add(row["function"])
        facts = (row["size_bytes"], row["n_instructions"], row["exit_kind"], name)
        blocks[(*named[number], *facts, counts["block"].get(number, 0))] += 1
    edges = Counter(
        (named[row["source"]], named[row["target"]], named[row["callee"]], row["kind"], counts["edge"].get(number, 0))
        for number, row in rows["edge"].items()
    )
    places: dict[int, Any] = {-1: None}
    places |= {number: (row["name"], row["address"]) for number, row in rows["function"].items()}
    functions = Counter(
        (row["name"], row["offset"], row["address"], places[row["caller"]], row["depth"])
        for number, row in rows["function"].items()
        if number in known
    )
    return blocks, edges, functions


def build_new_code() -> Path:
    """The program that runs new code when it is told to (tests/programs/load/new_code.c)."""
    return build_plain(SOURCES / "load/new_code.c", "-O1", "-pthread")
