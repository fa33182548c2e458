"""Two processes that are compared in the page: what is made of them once, and answers about it.

Runs in the controller. What takes long is made without holding up who asks other things of the traces.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import numpy as np

from clew.analysis.comparison.code import ComparedCode
from clew.analysis.comparison.summary import summarize_diff
from clew.analysis.comparison.trace_diff import TraceDiff
from clew.analysis.comparison.union_graph import UnionGraph
from clew.analysis.graph.graph import ProcessGraph
from clew.binary.demangle import demangle
from clew.errors import UsageError
from clew.server.code import MAX_FUNCTION_BLOCKS

__all__ = ["MAX_PARTINGS", "Comparison"]

Row = dict[str, Any]

MAX_PARTINGS: Final = 100
"""Of each pair of threads."""
_KEPT_ORDERS: Final = 8


class Comparison:
    """What differs between the processes that two graphs are of. Methods raise TraceDamagedError."""

    def __init__(self, a: ProcessGraph, b: ProcessGraph) -> None:
        self._graphs = (a, b)
        self._lock, self._order_lock = threading.RLock(), threading.Lock()
        self._orders: OrderedDict[tuple[int, str | None, str | None], list[Row]] = OrderedDict()

    @cached_property
    def _diff(self) -> TraceDiff:
        a, b = (graph.arrays.trace for graph in self._graphs)
        return TraceDiff(a, b)

    @cached_property
    def _union(self) -> UnionGraph:
        return UnionGraph(self._diff, self._graphs)

    @cached_property
    def _code(self) -> ComparedCode:
        return ComparedCode(self._union)

    @property
    def union(self) -> UnionGraph:
        """The graph of both."""
        with self._lock:
            return self._union

    def summarize(self) -> Row:
        """What `clew diff --json` says of two traces that have this process alone; whether their order can be compared,
        or else why not; and of functions how many there are."""
        with self._lock:
            return self._summary

    @cached_property
    def _summary(self) -> Row:
        diff, union = self._diff, self._union
        ran = union.sum_functions((diff.blocks.ran & diff.blocks.is_comparable)[:, union.number]) > 0
        differs = union.sum_functions(diff.blocks.differs[np.newaxis, union.number])[0] > 0
        modes = [trace.mode for trace in diff.traces]
        is_same = diff.traces[0].directory == diff.traces[1].directory
        return {
            **summarize_diff(diff),
            "functions": {
                "same": int(np.count_nonzero(ran.all(axis=0) & ~differs)),
                "differ": int(np.count_nonzero(ran.all(axis=0) & differs)),
                "only_in_a": int(np.count_nonzero(ran[0] & ~ran[1])),
                "only_in_b": int(np.count_nonzero(ran[1] & ~ran[0])),
            },
            "is_same": is_same and self._graphs[0].process_id == self._graphs[1].process_id,
            "is_ordered": diff.is_ordered,
            "no_order": None
            if diff.is_ordered
            else f"A is of mode {modes[0]}, B of {modes[1]}: where they part is known only of two of mode full",
        }

    def describe_function(self, function: int) -> Row:
        """The code of a function in A and in B. Raises UsageError if there is none."""
        with self._lock:
            if not 0 <= function < self._union.n_functions:
                raise UsageError(f"function: there are {self._union.n_functions}")
            return self._code.describe_function(function, MAX_FUNCTION_BLOCKS)

    def find_order(self, partings: int, start: str | None, only: str | None) -> Row:
        """Where threads part: rows as `clew diff --json` has in `order`, with demangled names, and each place with its
        `node`. Raises UsageError for words that mean nothing."""
        if not 1 <= partings <= MAX_PARTINGS:
            raise UsageError(f"partings: from 1 to {MAX_PARTINGS}")
        reason = self.summarize()["no_order"]
        # Long paths take long: others are answered meanwhile.
        with self._order_lock:
            wanted = (partings, start, only)
            if wanted not in self._orders:
                self._orders[wanted] = self._name_places(self._diff.order(partings, start=start, only=only))
                while len(self._orders) > _KEPT_ORDERS:
                    self._orders.popitem(last=False)
            return {"threads": self._orders[wanted], "reason": reason}

    def _name_places(self, rows: list[Row]) -> list[Row]:
        for row in rows:
            for side, place in _iter_places(row):
                place["node"] = self._find_node(side, int(place["app_pc"], 16))
                if place["symbol"] is not None:
                    place["symbol"] = demangle(place["symbol"])
        return rows

    @cached_property
    def _node_at(self) -> tuple[dict[int, int], dict[int, int]]:
        """By address of code its node, in A and in B."""
        found: list[dict[int, int]] = []
        for side, graph in enumerate(self._graphs):
            nodes = np.flatnonzero(self._union.block[side] >= 0)
            into = self._diff.pieces[side].into[self._union.piece[side, nodes]]
            address = graph.app_pc[self._union.block[side, nodes]] + into.astype(np.uint64)
            found.append(dict(zip(address.tolist(), nodes.tolist(), strict=True)))
        return found[0], found[1]

    def _find_node(self, side: int, address: int) -> int | None:
        return self._node_at[side].get(address)


def _iter_places(threads: Row) -> Iterator[tuple[int, Row]]:
    """The places that are told of two threads, each once, and whose they are: 0 for A, 1 for B."""
    seen: set[int] = set()
    told = [(0, threads["last"])]
    for parting in threads["partings"]:
        told += [(0, parting["last"]), (0, parting["met"]), *((0, place) for place in parting["calls"])]
        told += [(side, place) for side, name in enumerate("ab") for place in parting[name]["next"]]
    for side, place in told:
        if place is not None and id(place) not in seen:
            seen.add(id(place))
            yield side, place
