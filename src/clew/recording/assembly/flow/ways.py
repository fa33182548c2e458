"""The ways out of fragments and through them, each with the counter that counts it.

Runs in the controller, after the target ended. Pure. How often each was taken is not known here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._generated import NO_INDEX, EdgeKind, ExitKind
from clew.recording.assembly.arrays.rows import NumberSet, Rows
from clew.recording.assembly.arrays.tallies import narrow
from clew.recording.assembly.records.records import ParsedRecords
from clew.recording.assembly.records.states import CodeStates

__all__ = ["DIRECT_EDGES", "FragmentEdges", "FragmentPaths", "collect_ways"]

Array = npt.NDArray[Any]

DIRECT_EDGES = {
    ExitKind.FALL_THROUGH: EdgeKind.FALL_THROUGH,
    ExitKind.JUMP: EdgeKind.JUMP,
    ExitKind.CALL: EdgeKind.CALL,
    ExitKind.SYSCALL: EdgeKind.SYSCALL,
}


@dataclass(frozen=True)
class FragmentEdges:
    """Ways out, one row each: from a fragment (`source`, an index, or -1) to an address.

    `source_pc` is the instruction for the kinds signal and fault, the fragment's first for the others. `counter` is
    the counter's index, or -1. `target` is the fragment (an index) that it leads to where the runtime said so, or -1;
    `tsc` is when the runtime first told of the edge, or made its fragment. `source_state` and `target_state`, i8, are
    those (CodeState) of the code on both sides at that time.
    """

    source: Array
    source_pc: Array
    target_pc: Array
    kind: Array
    counter: Array
    target: Array
    tsc: Array
    source_state: Array
    target_state: Array

    def __len__(self) -> int:
        return len(self.source)

    def take(self, chosen: Array) -> FragmentEdges:
        """The rows that `chosen` names."""
        return FragmentEdges(**{name: value[chosen] for name, value in vars(self).items()})


@dataclass(frozen=True)
class FragmentPaths:
    """Ways through fragments, one row each: fragment `fragment` from its start up to `stop_pc` (its end, or the
    instruction that faulted), as often as counter `counter` says.
    """

    fragment: Array
    stop_pc: Array
    counter: Array

    def __len__(self) -> int:
        return len(self.fragment)

    def take(self, chosen: Array) -> FragmentPaths:
        """The rows that `chosen` names."""
        return FragmentPaths(**{name: value[chosen] for name, value in vars(self).items()})


def collect_ways(
    parsed: ParsedRecords, states: CodeStates, counted: NumberSet | None = None
) -> tuple[FragmentEdges, FragmentPaths]:
    """Every way out and every way through, with its counter: those whose counters are among `counted`, if it is given;
    else those never taken as well."""
    fragments = parsed.fragments
    has_counter = fragments.counter_index >= 0
    recorded = ~fragments.is_excluded
    edges: list[tuple[Array, ...]] = []
    paths: list[tuple[Array, Array, Array]] = []

    def find(is_way: Array, *, is_second: bool = False) -> tuple[Array, Array]:
        """The fragments (indices) that have a way, and the counters of these."""
        rows = np.flatnonzero(is_way)
        counter = fragments.counter_index[rows]
        if is_second:
            counter = np.where(has_counter[rows], counter + 1, counter)
        if counted is None:
            return narrow(rows), counter
        has_counted = counted.holds(counter)
        return narrow(rows[has_counted]), counter[has_counted]

    def add_edges(rows: Array, counter: Array, target_pc: Array, kind: EdgeKind) -> None:
        kinds, unsaid = np.full(len(rows), kind, np.uint8), np.full(len(rows), -1, np.int32)
        columns = fragments.app_pc[rows], target_pc[rows], kinds, counter, unsaid, fragments.tsc[rows]
        edges.append((rows, *columns))

    for exit_kind, edge_kind in DIRECT_EDGES.items():
        targets = fragments.end_pc if exit_kind in (ExitKind.FALL_THROUGH, ExitKind.SYSCALL) else fragments.target_pc
        is_way = (fragments.exit_kind == exit_kind) & (recorded | fragments.counts_first)
        add_edges(*find(is_way), targets, edge_kind)
    branches = fragments.exit_kind == ExitKind.CONDITIONAL
    add_edges(*find(branches & (recorded | fragments.counts_first)), fragments.target_pc, EdgeKind.TAKEN)
    not_taken = find(branches & (recorded | fragments.counts_second), is_second=True)
    add_edges(*not_taken, fragments.end_pc, EdgeKind.NOT_TAKEN)

    is_indirect = (fragments.exit_kind == ExitKind.INDIRECT_JUMP) | (fragments.exit_kind == ExitKind.INDIRECT_CALL)
    for fragment, counter in (find(recorded & ~is_indirect), find(recorded & branches, is_second=True)):
        paths.append((fragment, fragments.end_pc[fragment], counter))

    rows = parsed.dynamic_edges
    if counted is not None:
        rows = rows[(rows["counter_index"] != NO_INDEX) & counted.holds(rows["counter_index"].astype(np.int64))]
    by_number = Rows(fragments.fragment_id)
    source = by_number.find_first(rows["source_fragment_id"])
    counter = rows["counter_index"].astype(np.int64)
    counter[counter == NO_INDEX] = -1
    kind = rows["edge_kind"].copy()
    source_pc, target_pc = rows["source_pc"].astype(np.uint64), rows["target_pc"].astype(np.uint64)
    inside = np.zeros(len(rows), bool)
    has_source = np.flatnonzero(source >= 0)
    fragment = source[has_source]
    inside[has_source] = (target_pc[has_source] >= fragments.app_pc[fragment]) & (
        target_pc[has_source] < fragments.end_pc[fragment]
    )
    is_partial = kind == EdgeKind.PARTIAL
    partial = np.flatnonzero(is_partial & inside)
    partial = partial[fragments.starts_instruction(source[partial], target_pc[partial])]
    partial = partial[recorded[source[partial]]]
    paths.append((source[partial], target_pc[partial], counter[partial]))
    through = has_source[is_indirect[fragment] & recorded[fragment]]
    through = through[(kind[through] == EdgeKind.INDIRECT_CALL) | (kind[through] == EdgeKind.INDIRECT_JUMP)]
    paths.append((source[through], fragments.end_pc[source[through]], counter[through]))
    needs_source = (kind != EdgeKind.START) & (kind != EdgeKind.SIGNAL) & (kind != EdgeKind.FAULT)
    # Returns are no edges here: such a record says what a symbol of paths means.
    usable = np.flatnonzero(~is_partial & (kind != EdgeKind.RETURN) & ((source >= 0) | ~needs_source))
    # What the dispatcher counts goes on counting when code at the target changes: the first target says nothing.
    target = np.where(needs_source & (kind != EdgeKind.SIGRETURN), by_number.find_first(rows["target_fragment_id"]), -1)
    columns = (source, source_pc, target_pc, kind, counter, target, rows["tsc"].astype(np.uint64))
    edges.append(tuple(column[usable] for column in columns))
    source, source_pc, target_pc, kind, counter, target, tsc = (_join(column) for column in zip(*edges, strict=True))
    found = states.find_of_ways(source, source_pc, target_pc, tsc)
    return (
        FragmentEdges(source, source_pc, target_pc, kind, counter, target, tsc, *found),
        FragmentPaths(*(_join(column) for column in zip(*paths, strict=True))),
    )


def _join(parts: tuple[Array, ...]) -> Array:
    """One column; numbers of fragments and of counters of 32 bits, if they fit."""
    joined = np.concatenate(parts)
    return narrow(joined) if joined.dtype == np.int64 else joined
