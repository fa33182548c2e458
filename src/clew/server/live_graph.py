"""The graph of a process that runs: rows of its functions, blocks and edges, with names and counts.

Runs in the controller, in the live viewer's process. Functions and blocks are those that the finished trace will have
(`analysis/graph/graph.py`), but numbered as they come: a number stays. Times are told by the processor's time stamps,
whose rate is measured from the process's start to now.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from clew.analysis.code.functions import NO_OFFSET, group_blocks, name_function
from clew.analysis.graph.discovery import Discovery
from clew.analysis.graph.graph import CALLS, JUMPS
from clew.binary.demangle import demangle
from clew.binary.path_codec import read_time_stamp
from clew.binary.plt import SUFFIX as STUB_SUFFIX
from clew.protocol._generated import EdgeKind, Mode
from clew.recording.assembly.images.images import Image, ImageFiles, ImageMap, build_image_map
from clew.recording.assembly.tables.tables import clean_text, name_blocks, number_blocks
from clew.recording.live.process import LiveCode, LiveProcess
from clew.server.graph_arrays import find_main_image, function_flags
from clew.server.live_rows import LiveRows
from clew.store.columns import Array

__all__ = ["LiveGraph", "LiveThread"]

MAX_TOLD_THREADS: Final = 500
"""So many threads are told of one by one: those that run before those that ended."""
_ACROSS: Final = [EdgeKind[kind.upper()] for kind in (*CALLS, *JUMPS)]
_CALLS: Final = [EdgeKind[kind.upper()] for kind in CALLS]
_NEVER: Final = np.iinfo(np.uint64).max


@dataclass(frozen=True)
class LiveThread:
    """A thread, or `n_members` of which only the sum is known, and what it executed so far."""

    tid: int
    name: str
    is_running: bool
    n_members: int
    instructions: int
    executions: int


class LiveGraph:
    """The graph of `process`. `start_ns` is when the recording began, CLOCK_REALTIME.

    `functions`, `blocks` and `edges` are rows that change; `names` are the functions', demangled. `images` has path,
    base and size of each image; `images_changed` is when one was added. `threads` are those of the last update.
    """

    def __init__(self, process: LiveProcess, files: ImageFiles, start_ns: int, born: int = 0) -> None:
        self.process = process
        self.born = born
        """The number in the sequence from which on this is the graph."""
        self.trouble = ""
        """Why it could not be brought up to now the last time; empty where it could."""
        self._files = files
        self._start_ns = start_ns
        self.functions = LiveRows(
            {
                "image": "i4",
                "offset": "u8",
                "address": "u8",
                "discovered": "f8",
                "caller": "i4",
                "depth": "i4",
                "flags": "u1",
                "name": "u4",
            },
            ("image", "offset"),
            ("discovered",),
        )
        self.blocks = LiveRows(
            {
                "address": "u8",
                "code_version": "u4",
                "function": "i4",
                "size_bytes": "u4",
                "n_instructions": "u4",
                "exit_kind": "i1",
                "is_recorded": "u1",
                "first": "f8",
            },
            ("address", "code_version"),
            ("first",),
        )
        self.edges = LiveRows(
            {"source": "i4", "target": "i4", "kind": "i1", "callee": "i4"}, ("source", "target", "kind", "callee")
        )
        self.texts: list[str] = []
        """Names that `functions` has the numbers of."""
        self.images: list[dict[str, Any]] = []
        self.images_changed = 0
        self.threads: list[LiveThread] = []
        self.n_threads_ended = 0
        self.instructions = self.executions = 0
        self._text_of: dict[str, int] = {}
        self._image_of: dict[tuple[str, int], int] = {}
        self._first_tsc = 0
        self._ns_per_tick = 0.0
        self._last: tuple[int, bytes] | None = None

    def update(self, sequence: int) -> bool:
        """Bring all up to now, as number `sequence`; whether anything may have changed. Raises ValueError, KeyError."""
        process = self.process
        process.read_counters()
        if process.start is None:
            return False
        told = process.version, b"".join(one.counters.value.tobytes() for one in process.threads)
        if told == self._last:
            return False
        code = process.work_out()
        self._last, self.trouble = told, ""
        self._set_clock()
        parsed = code.code.parsed
        images = build_image_map(process.initial_images, parsed.mappings, parsed.unmaps, self._files)
        block_id, kept = number_blocks(code.blocks, code.edges, 0)
        block, edge = self._update_rows(code, images, block_id, kept, sequence)
        self._count(code, block_id, block, edge, sequence)
        return True

    def _update_rows(
        self, code: LiveCode, images: ImageMap, block_id: Array, kept: Array, sequence: int
    ) -> tuple[Array, Array]:
        """Bring functions, blocks and edges up to now: the rows of the blocks `kept`, and of the edges."""
        blocks, edges = code.blocks, code.edges
        first_tsc = blocks.first_tsc[kept]
        # What a fork inherited, and what nobody told the time of, is as old as the process, as in the finished trace.
        tsc = np.maximum(np.where(first_tsc == _NEVER, 0, first_tsc), np.uint64(self._first_tsc))
        app_pc, version = blocks.app_pc[kept], blocks.code_version[kept]
        image = images.locate(app_pc, first_tsc)
        base = np.array([row.base for row in images.images] + [0], np.uint64)
        offset = app_pc - base[image]
        image = np.where(app_pc >= base[image], image, -1)
        symbol, names, _, function_offset = name_blocks(image, offset, images)
        known_image = np.array([*(self._number_image(row, sequence) for row in images.images), -1])[image]
        start = np.where((image >= 0) & (function_offset >= 0), function_offset.astype(np.uint64), NO_OFFSET)
        of_block, first_block = group_blocks(known_image, start)
        found = Discovery(of_block, len(first_block), app_pc, version, tsc)
        first_block = first_block[found.number]
        entry = found.find_entries((base[image] + start)[first_block], start[first_block] != NO_OFFSET)
        source, target, callee = (block_id[ends] for ends in (edges.source, edges.target, edges.callee))
        is_across, is_call = np.isin(edges.kind, _ACROSS), np.isin(edges.kind, _CALLS)
        caller, depth = found.find_callers(source, target, is_across, is_call)
        texts = self._name_functions(entry, symbol, names, known_image, start)
        is_stub = np.array([self.texts[text].endswith(STUB_SUFFIX) for text in texts.tolist()], bool)
        executable = clean_text((self.process.start or {}).get("executable", ""))
        rows: dict[str, Array] = {
            "image": known_image[entry],
            "offset": start[entry],
            "address": app_pc[entry],
            "discovered": self._to_ns(found.discovered),
            "depth": depth,
            "flags": function_flags(is_stub, known_image[entry], find_main_image(self.images, executable)),
            "name": texts,
        }
        # A caller is told by its row, which it has only when all have theirs.
        number = self.functions.number(rows)
        rows["caller"] = np.append(number, -1)[caller]
        function = self.functions.update(rows, sequence)
        block = self.blocks.update(
            {
                "address": app_pc,
                "code_version": version,
                "function": function[found.function],
                "size_bytes": blocks.end_pc[kept] - app_pc,
                "n_instructions": blocks.n_instructions[kept],
                "exit_kind": blocks.exit_kind[kept],
                "is_recorded": blocks.is_recorded[kept],
                "first": self._to_ns(tsc),
            },
            sequence,
        )
        row_of = np.append(block, -1)
        edge = self.edges.update(
            {"source": row_of[source], "target": row_of[target], "kind": edges.kind, "callee": row_of[callee]}, sequence
        )
        return block, edge

    def _number_image(self, row: Image, sequence: int) -> int:
        """The number of an image, which it keeps."""
        key = row.path, row.base
        number = self._image_of.get(key)
        if number is None:
            number = self._image_of[key] = len(self.images)
            self.images.append({"path": clean_text(row.path), "base": hex(row.base), "size_bytes": row.size_bytes})
            self.images_changed = sequence
        return number

    def _name_functions(self, entry: Array, symbol: Array, names: list[str], image: Array, start: Array) -> Array:
        """Numbers in `texts` of what the functions are called that are entered at the blocks `entry`."""
        found = np.zeros(len(entry), np.int64)
        for function, block in enumerate(entry.tolist()):
            word = names[symbol[block]] if symbol[block] >= 0 else None
            number = int(image[block])
            path = self.images[number]["path"] if number >= 0 else None
            name = name_function(word, path, int(start[block]))
            text = self._text_of.get(name)
            if text is None:
                text = self._text_of[name] = len(self.texts)
                self.texts.append(clean_text(demangle(name)))
            found[function] = text
        return found

    def _set_clock(self) -> None:
        """Measure how fast time stamps rise, for all of what is told now."""
        process = self.process
        status = process.status if process.counters is None else process.counters.status
        self._first_tsc = int(status["start_tsc"])
        if process.end is not None and int(status["last_tsc"]) > self._first_tsc:
            # As in the finished trace.
            tsc, ns = int(status["last_tsc"]), int(status["last_ns"])
        else:
            tsc, ns = _read_clocks()
        ticks, elapsed_ns = tsc - self._first_tsc, ns - int(status["start_ns"])
        self._ns_per_tick = elapsed_ns / ticks if self._first_tsc and ticks > 0 and elapsed_ns > 0 else 0.0

    def _to_ns(self, tsc: Array) -> Array:
        """Nanoseconds since the recording began, f64, of time stamps."""
        assert self.process.start is not None
        first = self._first_tsc
        ticks = np.where(tsc > first, tsc - np.uint64(first), 0).astype(np.float64)
        found: Array = (self.process.start["start_ns"] - self._start_ns) + ticks * self._ns_per_tick
        return found

    def _count(self, code: LiveCode, block_id: Array, block: Array, edge: Array, sequence: int) -> None:
        """Counts of blocks and edges, and what each thread did; in mode coverage 1 for what ran."""
        n_instructions = code.blocks.n_instructions
        block_counts, edge_counts = np.zeros(len(block)), np.zeros(len(edge))
        threads: list[LiveThread] = []
        for thread, counts in zip(code.threads, code.edges.threads, strict=False):
            block_counts[block_id[counts.block]] += counts.block_count
            edge_counts[counts.edge] += counts.edge_count
            threads.append(
                LiveThread(
                    thread.tid,
                    thread.name,
                    not thread.end_tsc,
                    thread.n_members,
                    int((counts.block_count * n_instructions[counts.block]).sum()),
                    int(counts.block_count.sum()),
                )
            )
        if self.process.mode == Mode.COVERAGE:
            block_counts[:] = self.blocks.columns["is_recorded"][block]
            edge_counts[:] = 1
            threads = [LiveThread(one.tid, one.name, not one.end_tsc, one.n_members, 0, 0) for one in code.threads]
        self.blocks.count(block, block_counts, sequence)
        self.edges.count(edge, edge_counts, sequence)
        self.instructions = sum(one.instructions for one in threads)
        self.executions = sum(one.executions for one in threads)
        threads.sort(key=lambda one: (one.n_members > 1, not one.is_running))
        self.threads = threads[:MAX_TOLD_THREADS]
        self.n_threads_ended = self.process.n_ended_threads


def _read_clocks() -> tuple[int, int]:
    """The time stamp counter and CLOCK_MONOTONIC in nanoseconds, at one time."""
    return read_time_stamp(), time.monotonic_ns()
