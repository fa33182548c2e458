"""How much of what ran is in the order that a trace of mode full tells, and in how many places the order has gaps.

Runs in the controller. Paths without a gap are known by their index; of others what lies between a checkpoint and a gap
behind it is walked along.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clew.analysis.order.ordered import Stretches
from clew.analysis.order.path_code import ProcessCode, load_process_code
from clew.protocol._generated import PathGap
from clew.store.path_file import PathFile
from clew.store.trace import Trace

__all__ = ["OrderGaps", "find_order_gaps"]


@dataclass
class OrderGaps:
    """`instructions` is how many are in the order, of `all_instructions`; in so many places some are missing on purpose
    (`left_out`: a budget, mode counts), or because they were `lost`."""

    instructions: int = 0
    all_instructions: int = 0
    left_out: int = 0
    lost: int = 0


def find_order_gaps(trace: Trace) -> OrderGaps | None:
    """Of all threads; None in the modes without order. Raises TraceDamagedError where a path can't be read."""
    if trace.mode != "full":
        return None
    found = OrderGaps()
    with_path: set[tuple[int, int, int]] = set()
    code: tuple[int, ProcessCode] | None = None
    # Rows of one process follow one another.
    for row in trace.paths.to_pylist():
        process_id = int(row["process_id"])
        with_path.add((process_id, row["tid"], row["start_ns"]))
        found.all_instructions += row["instructions"]
        found.instructions += row["instructions"]
        file = PathFile(trace.directory, row["file"])
        try:
            gaps = list(_iter_gaps(file))
            if not gaps:
                continue
            if code is None or code[0] != process_id:
                code = process_id, load_process_code(trace, process_id)
            stretches = Stretches(code[1], file)
            for number, is_left_out in gaps:
                found.instructions -= _count_missing(stretches, number, row["instructions"])
                found.left_out += is_left_out
                found.lost += not is_left_out
        finally:
            file.close()
    for thread in trace.threads.to_pylist():
        # One that ended before the order was recorded has no path.
        if (thread["process_id"], thread["tid"], thread["start_ns"]) not in with_path and thread["instructions"]:
            found.all_instructions += thread["instructions"]
            found.left_out += 1
    return found


def _iter_gaps(file: PathFile) -> Iterator[tuple[int, bool]]:
    """The stretches of a path at whose end something is missing, and whether it was left out."""
    for number, place in enumerate(file.places["is_after_loss"].tolist()):
        if place:
            yield number, place == PathGap.LEFT_OUT
    if file.facts.is_lost_at_end:
        yield len(file.places), file.facts.is_thinned_at_end


def _count_missing(stretches: Stretches, number: int, all_instructions: int) -> int:
    """How many instructions are missing at the end of a stretch."""
    known = sum(stretches.open_entry(entry).skip()[0] for entry in stretches.entries(number))
    is_last = number + 1 == len(stretches)
    end = all_instructions if is_last else stretches[number + 1].instructions
    return max(end - stretches[number].instructions - known, 0)
