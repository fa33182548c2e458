"""Rankings of functions, blocks, edges, images and threads.

Runs in the controller. Hottest is what ran most instructions; in mode coverage, where nothing is counted, what has most
of them. Addresses in rows are hexadecimal strings, names are as in the files: mangled.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from clew.analysis.code.functions import FunctionTable, name_function
from clew.analysis.code.places import describe_blocks, find_blocks, place_of
from clew.analysis.ranking.ranking import Ranking, Row
from clew.analysis.tables.arrays import Array, TraceArrays
from clew.store.columns import distinct
from clew.store.trace import Trace

__all__ = ["BlockRanking", "EdgeRanking", "FunctionRanking", "ImageRanking", "ThreadRanking"]

_ENDS: Final = ("source_block_id", "target_block_id", "callee_block_id")


class FunctionRanking(Ranking):
    """Functions, by instructions.

    `entries` is how often control came to its start from another function, by whatever way; `calls` are calls that name
    it, `returns` those of them that returned.
    """

    TIES = ("pid", "image", "offset")

    def collect(self, arrays: TraceArrays) -> dict[str, Array]:
        functions = FunctionTable(arrays)
        arrays.load("edges", "edge_id", "source_block_id", "target_block_id", "callee_block_id", "kind")
        instructions = functions.add_up(arrays.block_executions * arrays.n_instructions)
        self.total += int(instructions.sum())
        calls, returns = functions.count_calls()
        return {
            "pid": functions.pid,
            "image": arrays.trace.whole_rows("images", functions.image),
            "offset": functions.offset,
            "block": arrays.trace.whole_rows("blocks", functions.first_block),
            "instructions": instructions,
            "executions": functions.add_up(arrays.block_executions),
            "entries": functions.count_entries(),
            "calls": calls,
            "returns": returns,
            "blocks": functions.add_up((arrays.block_executions > 0).astype(np.int64)),
        }

    def describe(self, trace: Trace, kept: dict[str, list[Any]]) -> list[Row]:
        symbols = trace.read_rows("blocks", kept["block"], ["symbol"])
        known = sorted({row for row in kept["image"] if row >= 0})
        paths = dict(zip(known, trace.read_rows("images", known, ["path"]), strict=True))
        rows = []
        for index, (symbol, image, offset) in enumerate(zip(symbols, kept["image"], kept["offset"], strict=True)):
            path = paths[image]["path"] if image >= 0 else None
            rows.append(
                {
                    "pid": kept["pid"][index],
                    "function": name_function(symbol["symbol"], path, offset),
                    "image": path,
                    "offset": hex(offset) if offset < 1 << 63 else None,
                    "instructions": kept["instructions"][index],
                    "share": self.share(kept["instructions"][index]),
                    **{name: kept[name][index] for name in ("executions", "entries", "calls", "returns", "blocks")},
                }
            )
        return rows


class BlockRanking(Ranking):
    """Blocks, by instructions run in them."""

    TIES = ("block",)

    def collect(self, arrays: TraceArrays) -> dict[str, Array]:
        arrays.load("blocks", "block_id", "n_instructions")
        executions = arrays.block_executions
        instructions = executions * arrays.n_instructions
        self.total += int(instructions.sum())
        self.note_images(arrays)
        row = arrays.trace.whole_rows("blocks", np.arange(arrays.n_blocks))
        return {"block": row, "instructions": instructions, "executions": executions}

    def describe(self, trace: Trace, kept: dict[str, list[Any]]) -> list[Row]:
        return [
            {**block, "instructions": instructions, "share": self.share(instructions), "executions": executions}
            for block, instructions, executions in zip(
                describe_blocks(trace, kept["block"]), kept["instructions"], kept["executions"], strict=True
            )
        ]


class EdgeRanking(Ranking):
    """Edges, by executions; `instructions` are those of the block entered, as often as the edge was taken."""

    KEY = "executions"
    TIES = ("edge",)

    def collect(self, arrays: TraceArrays) -> dict[str, Array]:
        return {
            "edge": arrays.trace.whole_rows("edges", np.arange(arrays.n_edges)),
            "executions": arrays.edge_executions,
        }

    def describe(self, trace: Trace, kept: dict[str, list[Any]]) -> list[Row]:
        edges = trace.read_rows("edges", kept["edge"], ["pid", "kind", *_ENDS])
        blocks = find_blocks(trace, [edge[name] for edge in edges for name in _ENDS])
        rows = []
        for edge, executions in zip(edges, kept["executions"], strict=True):
            source, target, callee = (blocks.get(edge[name]) for name in _ENDS)
            rows.append(
                {
                    "pid": edge["pid"],
                    "source": source and place_of(source),
                    "target": target and place_of(target),
                    "kind": edge["kind"],
                    "callee": callee and place_of(callee),
                    "source_block": source and edge["source_block_id"],
                    "target_block": target and edge["target_block_id"],
                    "instructions": executions * (target["n_instructions"] if target else 0),
                    "executions": executions,
                }
            )
        return rows


class ImageRanking(Ranking):
    """Images, by instructions; code outside of images is a row for each process with the image null."""

    TIES = ("pid", "image")

    def collect(self, arrays: TraceArrays) -> dict[str, Array]:
        arrays.load("blocks", "block_id", "pid", "image_id", "n_instructions")
        arrays.load("images", "image_id", "pid")
        n_images, pids = arrays.trace.n_rows("images"), distinct(arrays.block_pid)
        # One more row for each process: what lies in no image.
        group = np.where(
            arrays.block_image >= 0, arrays.block_image, n_images + np.searchsorted(pids, arrays.block_pid)
        )
        executions = arrays.block_executions
        sums = {"instructions": executions * arrays.n_instructions, "executions": executions, "blocks": executions > 0}
        columns = {
            "image": arrays.trace.whole_rows("images", np.append(np.arange(n_images), np.full(len(pids), -1))),
            "pid": np.append(arrays.numbers("images", "pid"), pids),
        }
        for name, values in sums.items():
            columns[name] = np.zeros(n_images + len(pids), np.int64)
            np.add.at(columns[name], group, values.astype(np.int64))
        self.total += int(columns["instructions"].sum())
        return columns

    def describe(self, trace: Trace, kept: dict[str, list[Any]]) -> list[Row]:
        known = sorted({row for row in kept["image"] if row >= 0})
        images = dict(zip(known, trace.read_rows("images", known, ["path", "base"]), strict=True))
        return [
            {
                "pid": kept["pid"][index],
                "image": images[row]["path"] if row >= 0 else None,
                "base": hex(images[row]["base"]) if row >= 0 else None,
                "instructions": kept["instructions"][index],
                "share": self.share(kept["instructions"][index]),
                "executions": kept["executions"][index],
                "blocks": kept["blocks"][index],
            }
            for index, row in enumerate(kept["image"])
        ]


class ThreadRanking(Ranking):
    """Threads, by instructions; in mode coverage, where that is not known, too."""

    LEAST = -(1 << 63)
    TIES = ("thread",)

    def collect(self, arrays: TraceArrays) -> dict[str, Array]:
        arrays.load("threads", "instructions", "block_executions")
        instructions = arrays.numbers("threads", "instructions")
        self.total += int(instructions.sum())
        row = arrays.trace.whole_rows("threads", np.arange(len(instructions)))
        return {"thread": row, "instructions": instructions}

    def describe(self, trace: Trace, kept: dict[str, list[Any]]) -> list[Row]:
        names = ("pid", "tid", "name", "end", "instructions", "block_executions")
        return [
            {
                **{name: thread[name] for name in ("pid", "tid", "name", "end", "instructions")},
                "share": self.share(thread["instructions"]),
                "executions": thread["block_executions"],
            }
            for thread in trace.read_rows("threads", kept["thread"], names)
        ]
