"""Which answers go into a page that is taken away: as much as there is room for, what is asked for first first.

Runs in the controller. The answers are those of `server/answers.py`, made as for the page, whose `api/file-source.ts`
gives them to it. Threads are told together: answers about some of them are not among these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from clew.errors import UsageError
from clew.protocol._constants import LISTING_PAGE, MOST_BLOCKS
from clew.server.answer_pack import AnswerPack, make_key
from clew.server.answers import ANSWERS
from clew.server.container import decode_container
from clew.server.query import Query
from clew.server.served_trace import ServedTrace
from clew.server.summary import list_traces
from clew.server.table_files import TableFile
from clew.server.taken_calls import take_calls

__all__ = ["RecordedAnswers"]

BINS: Final = 1000
"""Of the timeline, at any width."""

MOST_PROCESSES: Final = 64
"""Processes whose graphs are there: those that executed most."""

STATES: Final = 600
"""Places in the order of threads that can be gone to, of all threads together."""

MOST_REPLAYED: Final = 8
"""Threads that can be replayed: those with the longest paths."""

_FUNCTIONS_AT_ONCE: Final = 64


class RecordedAnswers:
    """The answers about the trace `served` that go into `limit_bytes` of text.

    `pack` has them; `left_out` says what there was no room for, and `n_functions` of how many functions the code is in
    it. Raises UsageError where there is no room for the graph of the process that executed most, and TraceError.
    """

    def __init__(self, served: ServedTrace, limit_bytes: int) -> None:
        self._served = served
        self.pack = AnswerPack(limit_bytes)
        self.left_out: list[str] = []
        self.n_functions = 0
        # Minus the length, the process and the id of each thread that has an order.
        self._ordered: list[tuple[int, int, int]] = []
        self._n_functions: dict[int, int] = {}
        if not self.pack.add([("traces", list_traces([served])), ("traces/0", self._ask("", {}))]):
            raise _no_room(limit_bytes)
        processes = sorted(served.summary["processes"], key=lambda process: -_count_instructions(process))
        kept = []
        for process in processes[:MOST_PROCESSES]:
            if not self.pack.add(self._iter_graph(process)):
                break
            kept.append(process)
        if processes and not kept:
            raise _no_room(limit_bytes)
        self._leave_out(len(processes) - len(kept), "process", "processes")
        n_functions = sum(self._n_functions[process["process_id"]] for process in kept)
        for process in kept:
            if not self._add_code(process["process_id"]):
                break
        self._leave_out(n_functions - self.n_functions, "function's code", "functions' code")
        self._add_replays({process["process_id"] for process in kept})
        for process in kept:
            self._add_calls(process)
        for what, iterate in (("the listing", self._iter_listing), ("cross references", self._iter_references)):
            for process in kept:
                if not self.pack.add(iterate(process["process_id"])):
                    self.left_out.append(f"{what} of process {process['pid']}")

    @property
    def about(self) -> dict[str, Any]:
        """What the page is told of the file."""
        return {"version": 1, "left_out": self.left_out}

    def _iter_graph(self, process: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """What is seen of a process before anything is selected."""
        path = {"process": process["process_id"]}
        graph = self._served.graph(process["process_id"])
        self._n_functions[process["process_id"]] = graph.n_functions
        yield self._take("/processes/{process:index}/functions", path)
        counted: dict[str, object] = {}
        if graph.n_blocks <= MOST_BLOCKS:
            yield self._take("/processes/{process:index}/blocks", path)
            counted = {"blocks": 1, "owners": 1} if len(graph.threads) > 1 else {"blocks": 1}
        # The page asks for what it needs of these: the key leaves open how much that is.
        template = "/processes/{process:index}/counts"
        yield self._key(template, path), self._ask(template, path, counted)
        yield self._take("/processes/{process:index}/thread-functions", path)
        template = "/processes/{process:index}/timeline"
        timeline = self._ask(template, path, {"bins": BINS})
        yield self._key(template, path), timeline
        assert isinstance(timeline, bytes)
        _, meta, arrays = decode_container(timeline)
        self._ordered += [
            (-int(length), process["process_id"], int(tid))
            for tid, length, is_ordered in zip(arrays["tid"], arrays["length"], arrays["is_ordered"], strict=True)
            if is_ordered and length > 0
        ]
        template = "/processes/{process:index}/events"
        span = {"from": meta["first"], "to": meta["last"] + 1}
        yield self._key(template, path), self._ask(template, path, span)

    def _add_code(self, process_id: int) -> bool:
        """The code of a process' functions, the busiest first, as long as there is room; whether there was for all."""
        graph = self._served.graph(process_id)
        ranked = np.argsort(-graph.sum_functions(graph.count()), kind="stable").tolist()
        for first in range(0, len(ranked), _FUNCTIONS_AT_ONCE):
            batch = ranked[first : first + _FUNCTIONS_AT_ONCE]
            if not self.pack.add(self._iter_code(process_id, batch)):
                return False
            self.n_functions += len(batch)
        return True

    def _iter_code(self, process_id: int, functions: Sequence[int]) -> Iterator[tuple[str, Any]]:
        for function in functions:
            path = {"process": process_id, "function": function}
            yield self._take("/processes/{process:index}/functions/{function:index}", path)
            yield self._take("/processes/{process:index}/functions/{function:index}/lines", path)

    def _iter_listing(self, process_id: int) -> Iterator[tuple[str, Any]]:
        path = {"process": process_id}
        yield self._take("/processes/{process:index}/listing-index", path)
        for start in range(0, self._served.graph(process_id).n_blocks, LISTING_PAGE):
            words: dict[str, object] = {"start": start, "count": LISTING_PAGE}
            yield self._take("/processes/{process:index}/listing", path, words)
            yield self._take("/processes/{process:index}/listing/lines", path, words)

    def _iter_references(self, process_id: int) -> Iterator[tuple[str, Any]]:
        for block in range(self._served.graph(process_id).n_blocks):
            yield self._take("/processes/{process:index}/references", {"process": process_id}, {"block": block})

    def _add_calls(self, process: dict[str, Any]) -> None:
        path = {"process": process["process_id"]}
        calls = take_calls(self._served, process["process_id"])
        # What the page asks for it chooses from these.
        key = self._key("/processes/{process:index}/calls/all", path)
        if calls is None or not self.pack.add([(key, calls)]):
            self.left_out.append(f"calls of process {process['pid']}")

    def _add_replays(self, kept: set[int]) -> None:
        """Places in the order of the threads that have the longest paths, evenly over each of them."""
        if self._served.trace.mode not in ("full", "region"):
            return
        ordered = sorted(thread for thread in self._ordered if thread[1] in kept)
        chosen = ordered[:MOST_REPLAYED]
        n_left = len(ordered) - len(chosen)
        for length, process_id, tid in chosen:
            n_left += not self.pack.add(self._iter_states(process_id, tid, -length, STATES // len(chosen)))
        self._leave_out(n_left, "thread's replay", "threads' replay")

    def _iter_states(self, process_id: int, tid: int, length: int, n: int) -> Iterator[tuple[str, Any]]:
        template, path = "/processes/{process:index}/threads/{tid:index}/replay", {"process": process_id, "tid": tid}
        seen = set()
        for position in np.unique(np.linspace(0, length, min(n, length + 1)).astype(np.int64)).tolist():
            state = self._ask(template, path, {"position": position})
            assert isinstance(state, dict)
            # Inside of a gap one settles at its start.
            if state["position"] not in seen:
                seen.add(state["position"])
                yield self._key(template, path, {"position": state["position"]}), state

    def _take(self, template: str, path: dict[str, int], words: dict[str, object] | None = None) -> tuple[str, Any]:
        return self._key(template, path, words), self._ask(template, path, words)

    def _ask(
        self, template: str, path: dict[str, int], words: dict[str, object] | None = None
    ) -> bytes | dict[str, Any]:
        told = {name: str(value) for name, value in (words or {}).items()}
        answer = ANSWERS[template](Query({"trace": 0, **path}, told, [self._served]))
        assert not isinstance(answer, TableFile)
        return answer

    @staticmethod
    def _key(template: str, path: dict[str, int], words: dict[str, object] | None = None) -> str:
        for name, value in path.items():
            template = template.replace(f"{{{name}:index}}", str(value))
        return make_key(f"traces/0{template}", words or {})

    def _leave_out(self, n: int, one: str, many: str) -> None:
        if n > 0:
            self.left_out.append(f"{n:,} {one if n == 1 else many}")


def _count_instructions(process: dict[str, Any]) -> int:
    return sum(thread["instructions"] for thread in process["threads"])


def _no_room(limit_bytes: int) -> UsageError:
    return UsageError(f"the graph does not fit into {limit_bytes >> 20} MB; allow more with --limit")
