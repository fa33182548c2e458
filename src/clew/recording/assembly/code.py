"""From records and counters of a process to its blocks, edges and counts.

Runs in the controller: once when the target has ended, and again and again for a live view, which is therefore what
the trace will be. Pure. Images, symbols and tables are not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass, replace
from clew.protocol._generated import Mode
from clew.recording.assembly.arrays.keys import VSYSCALL_START, KeySpace
from clew.recording.assembly.blocks.blocks import CutBlocks, build_blocks
from clew.recording.assembly.edges.edges import Edges, build_edges, find_ran
from clew.recording.assembly.flow.accounting import FlowBatch, ThreadFlows
from clew.recording.assembly.flow.flow import ProcessFlow, compute_flow, compute_seen_flow, keep_recorded
from clew.recording.assembly.records.records import Fragments, ParsedRecords, parse_records
from clew.recording.assembly.records.states import CodeStates
from clew.recording.assembly.records.versions import assign_versions, find_ends
from clew.recording.raw.process import RawThread

__all__ = ["ParsedCode", "find_blocks", "find_edges", "find_flow", "needs_fragments", "parse_code", "work_out"]


@dataclass(frozen=True)
class ParsedCode:
    """Records parsed, with the fragments' versions. `ends` are time stamps at which fragments went out of use."""

    parsed: ParsedRecords
    space: KeySpace
    ends: npt.NDArray[Any]
    states: CodeStates


def parse_code(records: npt.NDArray[np.uint8], n_counters: int) -> ParsedCode:
    """Parse the records of a process, shape (n, 64)."""
    parsed = parse_records(records, n_counters)
    ends = find_ends(parsed.fragments, parsed.invalidates)
    space = KeySpace(_find_highest_pc(parsed))
    versions = assign_versions(parsed.fragments, ends, space.max_versions)
    parsed = replace(parsed, fragments=replace(parsed.fragments, code_version=versions))
    return ParsedCode(parsed, space, ends, CodeStates(parsed.fragments, ends))


def work_out(
    code: ParsedCode, take_threads: Callable[[], Sequence[RawThread]], mode: Mode
) -> tuple[ProcessFlow, CutBlocks, Edges]:
    """The flow that the counters of threads tell, the blocks, and the edges between them with their counts.

    What is counted for ordered paths alone is in the flow, and neither in the counts of blocks nor of edges. What
    threads did is left in the flow where the order was recorded.
    """
    flow = find_flow(code, take_threads, mode)
    cut = find_blocks(code, flow)
    fragments = code.parsed.fragments
    flow, edges = find_edges(flow, cut, fragments if needs_fragments(fragments, mode) else None)
    return flow, cut, edges


def find_flow(code: ParsedCode, take_threads: Callable[[], Sequence[RawThread]], mode: Mode) -> ProcessFlow:
    """The first step of `work_out`: how often all fragments and ways out of them were taken.

    `take_threads` gives the threads; if they are nowhere else, their memory is free again once the flow is known.
    """
    if mode == Mode.COVERAGE:
        return compute_seen_flow(code.parsed, code.states)
    if mode == Mode.REGION:
        from clew.recording.assembly.region.regions import without_window

        return compute_flow(code.parsed, code.states, [without_window(thread) for thread in take_threads()])
    return compute_flow(code.parsed, code.states, take_threads())


def find_blocks(code: ParsedCode, flow: ProcessFlow) -> CutBlocks:
    """The second step: the blocks."""
    return build_blocks(code.parsed.fragments, flow, code.space, code.ends)


def needs_fragments(fragments: Fragments, mode: Mode) -> bool:
    """Whether `fragments` are needed once blocks are known: for their order, or as some are counted for it alone."""
    return mode not in (Mode.COUNTS, Mode.COVERAGE) or _are_counted_unrecorded(fragments)


def _are_counted_unrecorded(fragments: Fragments) -> bool:
    """Whether some of `fragments` are counted and not recorded."""
    return bool((fragments.is_left_out & ~fragments.is_excluded).any())


def find_edges(flow: ProcessFlow, cut: CutBlocks, fragments: Fragments | None) -> tuple[ProcessFlow, Edges]:
    """The last step: the flow, with no more than is asked of it later, and the edges.

    `fragments` are given if they are needed.
    """
    batches = flow.threads.batches
    if fragments is None:
        # Nothing is asked of what threads did once it is known of blocks and edges.
        flow = replace(flow, threads=ThreadFlows([]))
        return flow, build_edges(flow, cut, _take_all(batches))
    edges = build_edges(flow, cut, batches)
    if not _are_counted_unrecorded(fragments):
        return flow, edges
    # Paths name blocks that are not counted, too.
    passed = find_ran(edges)
    recorded = keep_recorded(flow, fragments)
    return flow, replace(build_edges(recorded, cut, recorded.threads.batches), passed=passed)


def _take_all(batches: list[FlowBatch]) -> Iterator[FlowBatch]:
    """All of `batches`, one after the other, which are there no more then."""
    batches.reverse()
    while batches:
        yield batches.pop()


def _find_highest_pc(parsed: ParsedRecords) -> int:
    """The highest address of code and of everything that edges lead to."""
    fragments, edges = parsed.fragments, parsed.dynamic_edges
    columns = (fragments.end_pc, fragments.target_pc, edges["target_pc"], edges["source_pc"], parsed.links["target_pc"])
    low = [column[column < VSYSCALL_START] for column in columns]
    return max((int(column.max()) for column in low if len(column)), default=0)
