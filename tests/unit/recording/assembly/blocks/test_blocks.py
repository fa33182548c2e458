"""Basic blocks out of fragments laid out by hand, one rule at a time."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from clew.protocol import _generated as protocol
from clew.protocol._generated import NO_INDEX, NOWHERE_PC, EdgeKind, EndKind, ExitKind, FragmentFlag, RecordKind
from clew.recording.assembly.arrays.keys import VSYSCALL_START, KeySpace
from clew.recording.assembly.records.records import parse_records
from clew.recording.assembly.records.versions import assign_versions, find_ends
from clew.recording.assembly.trace import assemble
from clew.recording.raw.process import Counters
from clew.store.trace import Trace
from tests.unit.recording.made_up_program import BASE
from tests.unit.recording.made_up_records import record, session_info
from tests.unit.recording.simulate import make_runtime

Recorded = tuple[dict[int, tuple[int, int]], dict[tuple[int, int, str], int]]


class Recording:
    """Records of one thread; addresses count from BASE."""

    def __init__(self) -> None:
        self.records: list[bytes] = []
        self.counters: list[int] = []
        self.n_fragments = 0

    def fragment(
        self, at: int, sizes: list[int], exit_kind: ExitKind, *counts: int, target: int = 0, **fields: int
    ) -> int:
        """A fragment of instructions of `sizes` bytes, whose exits were taken `counts` times."""
        size = sum(sizes)
        bits = np.zeros((size + 7) // 8 * 8, np.uint8)
        bits[np.cumsum([0, *sizes[:-1]])] = 1
        content = fields.pop("content", 0)
        code = bytes((content + BASE + at + byte) & 0xFF for byte in range(size))
        number = self.n_fragments
        self.n_fragments += 1
        defaults = {
            "kind": RecordKind.FRAGMENT,
            "app_pc": BASE + at,
            "target_pc": BASE + target,
            "fragment_id": number,
            "counter_index": len(self.counters) if counts else NO_INDEX,
            "size_bytes": size,
            "n_instructions": len(sizes),
            "exit_kind": exit_kind,
            "flags": 2 if exit_kind == ExitKind.FALL_THROUGH else 0,
            "tsc": 10 * number,
        }
        payload = code + np.packbits(bits, bitorder="little").tobytes()
        self.records.append(record(protocol.FRAGMENT_RECORD, payload, **(defaults | fields)))
        self.counters += counts
        return number

    def edge(self, kind: EdgeKind, source: int, target: int, count: int, fragment: int = NO_INDEX) -> None:
        self.records.append(
            record(
                protocol.DYNAMIC_EDGE_RECORD,
                kind=RecordKind.DYNAMIC_EDGE,
                source_pc=BASE + source if source else 0,
                target_pc=BASE + target,
                source_fragment_id=fragment,
                target_fragment_id=NO_INDEX,
                counter_index=len(self.counters),
                edge_kind=kind,
            )
        )
        self.counters.append(count)

    def assemble(self, directory: Path) -> Recorded:
        """Blocks as address: (size, executions), edges as (source, target, kind): executions; 0: no source."""
        process = make_runtime(1, max_steps=1).raw_process()
        thread = dataclasses.replace(
            process.threads[0], counters=Counters.from_values(np.array(self.counters, np.uint64)), end_kind=EndKind.EXIT
        )
        rows = np.frombuffer(b"".join(self.records), np.uint8).reshape(-1, 64)
        assemble([dataclasses.replace(process, records=rows, threads=[thread])], directory, session_info())
        trace = Trace(directory)
        blocks = {row["block_id"]: row for row in trace.blocks.to_pylist()}
        at = {number: row["app_pc"] - BASE for number, row in blocks.items()} | {None: 0}
        edges = {row["edge_id"]: row for row in trace.edges.to_pylist()}
        executions = {row["app_pc"] - BASE: (row["size_bytes"], 0) for row in blocks.values()}
        taken = {}
        for row in trace.counts.to_pylist():
            if row["block_id"] is not None:
                executions[at[row["block_id"]]] = (blocks[row["block_id"]]["size_bytes"], row["executions"])
            else:
                edge = edges[row["edge_id"]]
                taken[at[edge["source_block_id"]], at[edge["target_block_id"]], edge["kind"]] = row["executions"]
        return executions, taken


@pytest.fixture
def recording() -> Recording:
    """A thread that starts at 0x10."""
    recording = Recording()
    recording.edge(EdgeKind.START, 0, 0x10, 1)
    return recording


def test_entry_inside_a_fragment_splits_it(recording: Recording, tmp_path: Path) -> None:
    recording.fragment(0x10, [4, 4, 2], ExitKind.CONDITIONAL, 1, 0, target=0x14)
    recording.fragment(0x14, [4, 2], ExitKind.CONDITIONAL, 8, 1, target=0x14)
    recording.fragment(0x1A, [2], ExitKind.SYSCALL, 1)
    blocks, edges = recording.assemble(tmp_path)
    assert blocks == {0x10: (4, 1), 0x14: (6, 10), 0x1A: (2, 1)}
    assert edges == {
        (0, 0x10, "start"): 1,
        (0x10, 0x14, "fall_through"): 1,
        (0x14, 0x14, "taken"): 9,
        (0x14, 0x1A, "not_taken"): 1,
    }


def test_size_limit_makes_no_block(recording: Recording, tmp_path: Path) -> None:
    recording.fragment(0x10, [4, 4], ExitKind.FALL_THROUGH, 1)
    recording.fragment(0x18, [4, 4], ExitKind.FALL_THROUGH, 1)
    recording.fragment(0x20, [2], ExitKind.SYSCALL, 1)
    blocks, edges = recording.assemble(tmp_path)
    assert blocks == {0x10: (18, 1)}
    assert edges == {(0, 0x10, "start"): 1}


def test_limits_of_fragments_that_overlap(recording: Recording, tmp_path: Path) -> None:
    """Two ways to the same end, cut by limits in different places: what is shared adds up."""
    recording.fragment(0x10, [4, 4], ExitKind.FALL_THROUGH, 1)
    recording.fragment(0x18, [4, 4, 2], ExitKind.CONDITIONAL, 1, 0, target=0x14)
    recording.fragment(0x14, [4, 4], ExitKind.FALL_THROUGH, 1)
    recording.fragment(0x1C, [4, 2], ExitKind.CONDITIONAL, 0, 1, target=0x14)
    recording.fragment(0x22, [2], ExitKind.SYSCALL, 1)
    blocks, edges = recording.assemble(tmp_path)
    assert blocks == {0x10: (4, 1), 0x14: (14, 2), 0x22: (2, 1)}
    assert edges[0x10, 0x14, "fall_through"] == 1
    assert edges[0x14, 0x14, "taken"] == 1


def test_jump_over_a_prefix(recording: Recording, tmp_path: Path) -> None:
    """Decodings out of step are blocks of their own until they fall into step; what follows is a block once."""
    recording.fragment(0x10, [2], ExitKind.CONDITIONAL, 3, 4, target=0x13)
    recording.fragment(0x12, [4, 3, 2], ExitKind.CONDITIONAL, 4, 0, target=0x10)
    recording.fragment(0x13, [3, 3, 2], ExitKind.CONDITIONAL, 2, 1, target=0x10)
    recording.fragment(0x1B, [2], ExitKind.SYSCALL, 1)
    blocks, edges = recording.assemble(tmp_path)
    assert blocks == {0x10: (2, 7), 0x12: (4, 4), 0x13: (3, 3), 0x16: (5, 7), 0x1B: (2, 1)}
    assert (edges[0x12, 0x16, "fall_through"], edges[0x13, 0x16, "fall_through"]) == (4, 3)


def test_fault_inside_a_fragment(recording: Recording, tmp_path: Path) -> None:
    number = recording.fragment(0x10, [4, 4, 2], ExitKind.SYSCALL, 0)
    recording.edge(EdgeKind.PARTIAL, 0x10, 0x14, 1, number)
    recording.edge(EdgeKind.FAULT, 0x14, 0x40, 1)
    recording.fragment(0x40, [2], ExitKind.SYSCALL, 1)
    blocks, edges = recording.assemble(tmp_path)
    assert blocks == {0x10: (4, 1), 0x14: (4, 0), 0x40: (2, 1)}
    assert edges == {
        (0, 0x10, "start"): 1,
        (0x10, 0x14, "fall_through"): 1,
        (0x14, 0x40, "fault"): 1,
    }


def test_returns_are_what_is_missing(recording: Recording, tmp_path: Path) -> None:
    """The return point is also the head of a loop: only what no jump brought came by returns."""
    recording.fragment(0x10, [5], ExitKind.CALL, 3, target=0x40)
    recording.fragment(0x15, [2], ExitKind.CONDITIONAL, 4, 3, target=0x15)
    recording.fragment(0x17, [2], ExitKind.CONDITIONAL, 2, 1, target=0x10)
    recording.fragment(0x19, [2], ExitKind.SYSCALL, 1)
    recording.fragment(0x40, [1], ExitKind.RETURN, 3)
    blocks, edges = recording.assemble(tmp_path)
    assert blocks[0x15] == (2, 7)
    assert edges[0x10, 0x15, "return"] == 3
    assert (0x40, 0x15, "return") not in edges


def test_call_that_never_returns(recording: Recording, tmp_path: Path) -> None:
    recording.fragment(0x10, [5], ExitKind.CALL, 1, target=0x40)
    recording.fragment(0x40, [2], ExitKind.SYSCALL, 1)
    _, edges = recording.assemble(tmp_path)
    assert edges == {(0, 0x10, "start"): 1, (0x10, 0x40, "call"): 1}


def test_address_where_nothing_can_be_read(recording: Recording, tmp_path: Path) -> None:
    number = recording.fragment(0x10, [2], ExitKind.INDIRECT_CALL)
    recording.edge(EdgeKind.INDIRECT_CALL, 0x10, 0x7000, 1, number)
    recording.edge(EdgeKind.FAULT, 0x7000, 0x40, 1)
    recording.fragment(0x40, [2], ExitKind.SYSCALL, 1)
    blocks, edges = recording.assemble(tmp_path)
    assert blocks[0x7000] == (0, 0)
    assert edges[0x10, 0x7000, "indirect_call"] == edges[0x7000, 0x40, "fault"] == 1


def test_where_no_code_is_there_is_one_place(recording: Recording, tmp_path: Path) -> None:
    for number in range(3):
        recording.fragment(0x10, [4, 5], ExitKind.JUMP, 1, target=0x7000, content=number)
        gone = record(protocol.INVALIDATE_RECORD, kind=RecordKind.INVALIDATE, fragment_id=number, tsc=10 * number + 5)
        recording.records.append(gone)
    recording.fragment(0x40, [4, 2], ExitKind.INDIRECT_JUMP)
    recording.edge(EdgeKind.FAULT, 0x7000, 0x40, 3)
    recording.edge(EdgeKind.INDIRECT_JUMP, 0x40, 0x10, 2, fragment=3)
    blocks, _ = recording.assemble(tmp_path)
    assert blocks[0x7000] == (0, 0)
    assert Trace(tmp_path).blocks["app_pc"].to_pylist().count(BASE + 0x7000) == 1


def test_excluded_code_is_there_only_at_the_border(recording: Recording, tmp_path: Path) -> None:
    recording.fragment(0x10, [5], ExitKind.CALL, 2, target=0x40)
    recording.fragment(0x15, [2], ExitKind.CONDITIONAL, 1, 1, target=0x10)
    recording.fragment(0x17, [2], ExitKind.SYSCALL, 1)
    recording.fragment(0x40, [4], ExitKind.JUMP, target=0x50, flags=FragmentFlag.EXCLUDED)
    recording.fragment(0x50, [4], ExitKind.RETURN, flags=FragmentFlag.EXCLUDED)
    blocks, edges = recording.assemble(tmp_path)
    assert set(blocks) == {0x10, 0x15, 0x17, 0x40}
    assert edges[0x10, 0x15, "return"] == 2
    recorded = dict(zip(*(Trace(tmp_path).blocks[name].to_pylist() for name in ("app_pc", "is_recorded")), strict=True))
    assert recorded[BASE + 0x40] is False


def versions_of(recording: Recording, gone: dict[int, int]) -> list[int]:
    """Versions of the fragments by number, when those of `gone` went out of use at those time stamps."""
    for number, tsc in gone.items():
        recording.records.append(
            record(protocol.INVALIDATE_RECORD, kind=RecordKind.INVALIDATE, fragment_id=number, tsc=tsc)
        )
    parsed = parse_records(np.frombuffer(b"".join(recording.records), np.uint8).reshape(-1, 64), 100)
    found = assign_versions(parsed.fragments, find_ends(parsed.fragments, parsed.invalidates), 1000)
    return [int(found[at]) for at in np.argsort(parsed.fragments.fragment_id)]


def test_versions() -> None:
    recording = Recording()
    recording.fragment(0x10, [4, 4], ExitKind.RETURN, 1)
    recording.fragment(0x10, [4, 4], ExitKind.RETURN, 1, content=1)
    recording.fragment(0x14, [4], ExitKind.RETURN, 1, content=1)
    recording.fragment(0x10, [4, 4], ExitKind.RETURN, 1)
    recording.fragment(0x40, [4], ExitKind.RETURN, 1)
    assert versions_of(recording, {0: 5, 1: 15, 2: 25}) == [0, 1, 1, 0, 0]


def test_code_made_again_as_it_was_is_one_version() -> None:
    recording = Recording()
    for _ in range(3):
        recording.fragment(0x10, [4, 4], ExitKind.RETURN, 1)
    assert versions_of(recording, {0: 5, 1: 15}) == [0, 0, 0]


def test_each_cluster_has_versions_of_its_own() -> None:
    recording = Recording()
    for at in (0x10, 0x40, 0x80):
        recording.fragment(at, [4, 4], ExitKind.RETURN, 1)
        recording.fragment(at, [4, 4], ExitKind.RETURN, 1, content=int(at == 0x40))
        recording.fragment(at + 4, [4], ExitKind.RETURN, 1, content=int(at == 0x80))
    # Of the last one nothing went out of use.
    assert versions_of(recording, {0: 5, 3: 15}) == [0, 0, 0, 0, 1, 0, 0, 0, 0]


def test_keys() -> None:
    space = KeySpace(0x7FFFFFFFF000)
    pc = np.array([1, 0x7FFFFFFFE000, VSYSCALL_START, VSYSCALL_START + 0x800], np.uint64)
    version = np.array([0, 3, 0, space.max_versions - 1])
    key = space.key(version, pc)
    assert space.pc(key).tolist() == pc.tolist()
    assert space.version(key).tolist() == version.tolist()
    assert len(np.unique(key)) == 4
    assert KeySpace(1 << 50).max_versions == 1 << 13
    assert KeySpace((1 << 57) - 1).max_versions == 128


def test_keys_of_what_is_no_place() -> None:
    space = KeySpace(NOWHERE_PC)
    pc = np.array([0x7FFFFFFFEFFF, 0x7FFFFFFFF000, NOWHERE_PC, VSYSCALL_START, VSYSCALL_START + 0xFFF], np.uint64)
    key = space.key(np.full(len(pc), space.max_versions - 1), pc)
    assert (space.pc(key).tolist(), len(np.unique(key)), space.max_versions) == (pc.tolist(), len(pc), 1 << 16)
