"""The tables that reading ordered paths takes: how blocks end, and the numbers of indirect branches' targets.

Runs in the controller, after the target ended. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.protocol._generated import NO_SYMBOL, ExitKind
from clew.protocol.words import ENDING_WORDS, EndingWord
from clew.recording.assembly.arrays.keys import spans
from clew.recording.assembly.arrays.rows import Rows
from clew.recording.assembly.blocks.blocks import Blocks, CutBlocks
from clew.recording.assembly.edges.edges import Edges
from clew.recording.assembly.paths.finish_paths import FinishedPath
from clew.recording.assembly.paths.weights import CounterWeights
from clew.recording.assembly.records.records import Fragments, ParsedRecords
from clew.recording.assembly.tables.tables import FirstIds, number_blocks
from clew.recording.raw.process import RawProcess
from clew.store.columns import booleans, numbers, texts, words
from clew.store.schema import SCHEMAS

__all__ = ["build_path_tables", "find_last_instructions"]

Array = npt.NDArray[Any]

_MAX_INSTRUCTION_BYTES = 15

_ENDINGS: dict[ExitKind, EndingWord] = {
    ExitKind.FALL_THROUGH: "fall_through",
    ExitKind.JUMP: "jump",
    ExitKind.CONDITIONAL: "conditional",
    ExitKind.CALL: "call",
    ExitKind.INDIRECT_JUMP: "indirect_jump",
    ExitKind.INDIRECT_CALL: "indirect_call",
    ExitKind.RETURN: "return",
    ExitKind.SYSCALL: "fall_through",
    ExitKind.NONE: "stop",
}
_BACK_JUMP: EndingWord = "back_jump"
_DIRECT = (ExitKind.JUMP, ExitKind.CONDITIONAL, ExitKind.CALL)


def build_path_tables(
    process: RawProcess,
    parsed: ParsedRecords,
    cut: CutBlocks,
    edges: Edges,
    paths: list[FinishedPath],
    starts_ns: Array,
    weights: CounterWeights,
    first: FirstIds,
) -> Iterator[tuple[str, pa.Table]]:
    """Tables with their names. Call it before `first` is moved past the ids of the process."""
    fragments = parsed.fragments
    blocks = cut.blocks
    block_id, kept = number_blocks(blocks, edges, first.block)
    yield "paths", _paths(process, paths, starts_ns, first)

    branch_pc, target_pc = _find_branches(cut, fragments)
    kinds, is_direct = blocks.exit_kind[kept], np.isin(blocks.exit_kind[kept], _DIRECT)
    endings = np.full(max(ExitKind) + 1, ENDING_WORDS.index("stop"))
    for kind, word in _ENDINGS.items():
        endings[kind] = ENDING_WORDS.index(word)
    goes_back = target_pc[kept] <= branch_pc[kept]
    ending = endings[kinds]
    ending[(kinds == ExitKind.JUMP) & goes_back] = ENDING_WORDS.index(_BACK_JUMP)
    yield (
        "path_blocks",
        _table(
            "path_blocks",
            process,
            first,
            len(kept),
            block_id=block_id[kept],
            ending=words(ending, ENDING_WORDS),
            branch_pc=branch_pc[kept],
            target_pc=numbers(target_pc[kept], pa.uint64(), ~is_direct),
            is_taken=goes_back & (kinds == ExitKind.CONDITIONAL),
        ),
    )
    yield "path_targets", _targets(process, parsed, cut.blocks, block_id, branch_pc, first)
    yield "path_code", _code(process, fragments, first)
    counter, block, weight = weights.listed
    yield (
        "path_counters",
        _table(
            "path_counters",
            process,
            first,
            len(counter),
            counter=counter.astype(np.uint32),
            block_id=block_id[block],
            weight=weight.astype(np.int32),
        ),
    )


def _table(name: str, process: RawProcess, first: FirstIds, n: int, **columns: Any) -> pa.Table:
    columns |= {"process_id": np.full(n, first.process, np.int32), "pid": np.full(n, process.pid, np.int32)}
    schema = SCHEMAS[name]
    return pa.Table.from_arrays([_column(columns[field.name], field.type) for field in schema], schema=schema)


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if pa.types.is_boolean(kind):
        return booleans(values)
    return texts(values) if pa.types.is_string(kind) else numbers(values, kind)


def _paths(process: RawProcess, paths: list[FinishedPath], starts_ns: Array, first: FirstIds) -> pa.Table:
    return _table(
        "paths",
        process,
        first,
        len(paths),
        tid=[path.thread.tid for path in paths],
        start_ns=starts_ns,
        file=[path.file for path in paths],
        stored_bytes=[path.stored_bytes for path in paths],
        instructions=[path.instructions for path in paths],
        block_executions=[path.block_executions for path in paths],
    )


def _targets(
    process: RawProcess, parsed: ParsedRecords, blocks: Blocks, block_id: Array, branch_pc: Array, first: FirstIds
) -> pa.Table:
    fragments = parsed.fragments
    rows = parsed.dynamic_edges[parsed.dynamic_edges["symbol"] != NO_SYMBOL]
    source = Rows(fragments.fragment_id).find_first(rows["source_fragment_id"])
    rows, source = rows[source >= 0], source[source >= 0]
    # Of the branch at a fragment's end: every block that ends with it has the same targets.
    branch = find_last_instructions(fragments, source, fragments.end_pc[source])
    takes_symbols = np.isin(blocks.exit_kind, (ExitKind.INDIRECT_JUMP, ExitKind.INDIRECT_CALL, ExitKind.RETURN))
    ending = np.flatnonzero(takes_symbols & (block_id[: len(blocks)] >= 0))
    order = ending[np.argsort(branch_pc[ending], kind="stable")]
    sorted_pc = branch_pc[order]
    low, high = np.searchsorted(sorted_pc, branch), np.searchsorted(sorted_pc, branch, "right")
    row = np.repeat(np.arange(len(rows)), high - low)
    block = order[spans(low, high - low)]
    columns = np.stack([block_id[block], rows["symbol"][row].astype(np.int64)])
    _, chosen = np.unique(columns, axis=1, return_index=True)
    return _table(
        "path_targets",
        process,
        first,
        len(chosen),
        block_id=columns[0][chosen],
        number=columns[1][chosen].astype(np.int32),
        target_pc=rows["target_pc"][row][chosen].astype(np.uint64),
    )


def _code(process: RawProcess, fragments: Fragments, first: FirstIds) -> pa.Table:
    later = np.flatnonzero(fragments.is_later_code)
    return _table(
        "path_code",
        process,
        first,
        len(later),
        fragment_id=fragments.fragment_id[later].astype(np.int64),
        start_pc=fragments.app_pc[later],
        end_pc=fragments.end_pc[later],
        code_version=fragments.code_version[later].astype(np.uint32),
    )


def _find_branches(cut: CutBlocks, fragments: Fragments) -> tuple[Array, Array]:
    """Address of each block's last instruction (its own where it has no code), and where its direct branch leads."""
    blocks = cut.blocks
    branch_pc, target_pc = blocks.app_pc.copy(), np.zeros(len(blocks), np.uint64)
    has_code = np.flatnonzero(cut.part_first[1:] > cut.part_first[:-1])
    last_part = cut.parts[cut.part_first[1:][has_code] - 1]
    fragment = cut.code.fragment[last_part]
    branch_pc[has_code] = find_last_instructions(fragments, fragment, blocks.end_pc[has_code])
    target_pc[has_code] = fragments.target_pc[fragment]
    return branch_pc, target_pc


def find_last_instructions(fragments: Fragments, fragment: Array, end_pc: Array) -> Array:
    """Where the instruction of each fragment starts that ends at `end_pc`; its start if none does."""
    found = fragments.app_pc[fragment].copy()
    waiting = np.ones(len(fragment), bool)
    for distance in range(1, _MAX_INSTRUCTION_BYTES + 1):
        pc = end_pc - np.uint64(distance)
        waiting &= pc >= fragments.app_pc[fragment]
        here = np.flatnonzero(waiting)
        hits = here[fragments.starts_instruction(fragment[here], pc[here])]
        found[hits] = pc[hits]
        waiting[hits] = False
    return found
