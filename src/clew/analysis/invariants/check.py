"""Whether a trace is well-formed: what must hold in every one, checked.

Runs in the controller. Proves structure (ids lead somewhere, edges start and end where blocks do), flow (what comes
into a block goes out of it, by thread), that ordered paths lead through the blocks as often as was counted, that tags
tell of each execution once, that recorded calls are of what there is and as many as was counted, and that totals agree
between tables. Not whether the program really ran so: that takes another tracer. A trace is checked process by process,
so memory is bounded by the largest of them; paths are walked stretch by stretch, and tags are looked through some at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from clew.analysis.invariants.call_counts import CALL_COUNT_INVARIANTS
from clew.analysis.invariants.calls import CALL_INVARIANTS, check_entities
from clew.analysis.invariants.flow import FLOW_INVARIANTS
from clew.analysis.invariants.paths import PATH_INVARIANTS
from clew.analysis.invariants.structure import STRUCTURE_INVARIANTS, check_coverage, check_manifest
from clew.analysis.invariants.tags import TAG_INVARIANTS
from clew.analysis.tables.arrays import TraceArrays
from clew.analysis.tables.broken_places import Places, PlacesSoFar
from clew.analysis.tables.split import iter_closed
from clew.store.schema import SCHEMAS
from clew.store.trace import Trace

__all__ = ["Finding", "Invariant", "check_invariants", "list_invariants"]


@dataclass(frozen=True)
class Invariant:
    """Something that holds in every trace. `name` is a sentence.

    `check` looks at some processes of it, `check_whole`, where there is one, at what is only there once.
    """

    name: str
    check: Callable[[TraceArrays], Iterator[Places]]
    check_whole: Callable[[Trace], list[str]] | None = None


@dataclass(frozen=True)
class Finding:
    """An invariant that does not hold. `examples` are the first few places, `n_places` how many there are."""

    invariant: str
    n_places: int
    examples: list[str]


_OF_WHOLE: Final[dict[str, Callable[[Trace], list[str]]]] = {
    "every row belongs to a process of the trace": check_manifest,
    "counts are of blocks, edges and threads of the trace, each once": check_coverage,
    "references are of calls and entities of the trace, each once": check_entities,
}


def list_invariants() -> list[Invariant]:
    """Every invariant, in the order in which they are checked."""
    of_calls = (*CALL_INVARIANTS, *CALL_COUNT_INVARIANTS)
    every = [*STRUCTURE_INVARIANTS, *FLOW_INVARIANTS, *PATH_INVARIANTS, *TAG_INVARIANTS, *of_calls]
    return [Invariant(name, check, _OF_WHOLE.get(name)) for name, check in every]


def check_invariants(trace: Trace, *, max_examples: int = 5, piece_rows: int | None = None) -> list[Finding]:
    """What does not hold in `trace`; empty for a good one. Raises TraceDamagedError if a table can't be read.

    What is found does not depend on `piece_rows`, how many rows of several processes are looked at together.
    """
    invariants = list_invariants()
    found: list[list[PlacesSoFar]] = [[] for _ in invariants]
    for piece in iter_closed(trace, piece_rows):
        arrays = TraceArrays(piece)
        for table in ("blocks", "edges", "counts"):
            arrays.load(table, *(name for name in SCHEMAS[table].names if name not in _UNASKED))
        for table, names in _ASKED.items():
            arrays.load(table, *names)
        for invariant, questions in zip(invariants, found, strict=True):
            for index, places in enumerate(invariant.check(arrays)):
                if index == len(questions):
                    questions.append(PlacesSoFar(max_examples))
                questions[index].add(places)
    findings = []
    for invariant, questions in zip(invariants, found, strict=True):
        told = [] if invariant.check_whole is None else invariant.check_whole(trace)
        n_places = sum(question.n for question in questions) + len(told)
        if n_places:
            examples = [text for question in questions for text in question.examples] + told
            findings.append(Finding(invariant.name, n_places, examples[:max_examples]))
    return findings


_UNASKED: Final = ("symbol", "symbol_offset", "function_offset")
"""Columns that nothing is asked of."""

_ASKED: Final = {
    "images": ("image_id", "process_id", "base", "size_bytes"),
    "threads": ("process_id", "tid", "start_ns", "end_ns", "end", "instructions", "block_executions"),
}
"""What is asked of tables most of which is not: read at once, the files are opened once."""
