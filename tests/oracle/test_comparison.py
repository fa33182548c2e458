"""The oracle can fail: a trace wrong in one number is told apart; and its definitions are those of the design."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from clew.store.trace import Trace
from tests.e2e import runs
from tests.oracle import steps
from tests.oracle.compare import find_differences, find_instruction_differences
from tests.oracle.steps import CODE_DTYPE, StepKind, SteppedOnce, Steps, is_static, single_step
from tests.oracle.truth import BlockKey, EdgeKey, Truth
from tests.programs.build import find


def make_steps(code: dict[int, bytes], order: list[int]) -> Steps:
    """Steps over given instructions: `code` by address, `order` the addresses as they ran."""
    codes = np.zeros(len(code), dtype=CODE_DTYPE)
    for index, (pc, text) in enumerate(code.items()):
        codes[index] = (pc, text.ljust(16, b"\0"))
    numbers = {pc: index for index, pc in enumerate(code)}
    kinds = np.array([StepKind.STEP] * len(order) + [StepKind.EXIT], dtype=np.uint8)
    return Steps(codes, kinds, np.array([*(numbers[pc] for pc in order), 0], dtype=np.uint64))


INC, JNZ_BACK, NOP, SYSCALL, REP_STOSB = b"\xff\xc0", b"\x75\xfb", b"\x90", b"\x0f\x05", b"\xf3\xaa"


def test_loop_has_blocks_cut_where_it_is_entered() -> None:
    code = {0x10: NOP, 0x11: NOP, 0x12: INC, 0x14: JNZ_BACK, 0x16: SYSCALL}
    truth = Truth(make_steps(code, [0x10, 0x11, 0x12, 0x14, 0x11, 0x12, 0x14, 0x16]))
    first, loop, last = BlockKey(0x10, NOP), BlockKey(0x11, NOP + INC + JNZ_BACK), BlockKey(0x16, SYSCALL)
    assert truth.blocks == {first: (1, 1), loop: (2, 3), last: (1, 1)}
    assert truth.edges == {
        EdgeKey(None, first, "start"): 1,
        EdgeKey(first, loop, "fall_through"): 1,
        EdgeKey(loop, loop, "taken"): 1,
        EdgeKey(loop, last, "not_taken"): 1,
    }


def test_repeated_string_instruction_is_one() -> None:
    code = {0x10: NOP, 0x11: REP_STOSB, 0x13: SYSCALL}
    truth = Truth(make_steps(code, [0x10, 0x11, 0x11, 0x11, 0x11, 0x13]))
    assert truth.total_instructions == 3
    assert list(truth.blocks.values()) == [(1, 3)]


def test_return_runs_from_its_call() -> None:
    call, ret = b"\xe8\x01\x00\x00\x00", b"\xc3"
    code = {0x10: call, 0x15: SYSCALL, 0x16: ret}
    truth = Truth(make_steps(code, [0x10, 0x16, 0x15]))
    assert EdgeKey(BlockKey(0x10, call), BlockKey(0x15, SYSCALL), "return") in truth.edges
    code[0x30] = SYSCALL
    unannounced = Truth(make_steps(code, [0x10, 0x16, 0x30]))
    assert EdgeKey(BlockKey(0x16, ret), BlockKey(0x30, SYSCALL), "indirect_jump") in unannounced.edges


def test_unexplained_flow_is_refused() -> None:
    with pytest.raises(ValueError, match="came to"):
        Truth(make_steps({0x10: NOP, 0x20: NOP}, [0x10, 0x20]))


class AlteredTrace:
    """A trace with one value of one table changed."""

    def __init__(self, trace: Trace, table: str, column: str, row: int, change: Any) -> None:
        self._trace = trace
        rows = getattr(trace, table).to_pylist()
        rows[row][column] = change(rows[row][column])
        self._table, self._altered = table, pa.Table.from_pylist(rows)

    def __getattr__(self, name: str) -> Any:
        return self._altered if name == self._table else getattr(self._trace, name)


@pytest.mark.usefixtures("programs")
def test_every_altered_number_is_found(tmp_path: Path) -> None:
    program = find("call_pop")
    _, steps = single_step([program.path], tmp_path)
    truth = Truth(steps)
    path = tmp_path / "trace.clew"
    runs.record([program.path], path, fixed_layout=True)
    trace = Trace(path)
    assert find_differences(truth, trace) == []
    assert find_instruction_differences(truth, trace) == []
    for row in range(trace.counts.num_rows):
        altered: Any = AlteredTrace(trace, "counts", "executions", row, lambda value: value + 1)
        assert find_differences(truth, altered) != []
    for row in range(trace.blocks.num_rows):
        altered = AlteredTrace(trace, "blocks", "app_pc", row, lambda value: value + 1)
        assert find_differences(truth, altered) != []
    counted = set(trace.counts["edge_id"].to_pylist())
    for row, edge in enumerate(trace.edges["edge_id"].to_pylist()):
        if edge not in counted:
            continue
        altered = AlteredTrace(trace, "edges", "kind", row, lambda value: "jump" if value != "jump" else "taken")
        assert find_differences(truth, altered) != []


@pytest.mark.usefixtures("programs")
def test_what_was_stepped_is_kept_until_something_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    shutil.copy(find("call_pop").path, program)
    session, kept = tmp_path / "session", tmp_path / "kept"
    session.mkdir()
    kept.mkdir()
    first = SteppedOnce(session, kept)([program])
    monkeypatch.setattr(steps, "single_step", lambda *_: pytest.fail("it was stepped again"))
    again = SteppedOnce(session, kept)([program])
    assert again[0] == first[0]
    assert again[1].values.tolist() == first[1].values.tolist()
    assert [path.name for path in session.iterdir()] == []
    # Another program of that name, then another machine.
    stepped: list[runs.Command] = []

    def step_again(command: runs.Command, folder: Path) -> tuple[runs.Run, Steps]:
        stepped.append(command)
        return first

    monkeypatch.setattr(steps, "single_step", step_again)
    with program.open("ab") as file:
        file.write(b"more")
    SteppedOnce(session, kept)([program])
    monkeypatch.setattr(steps, "processor_features", lambda: frozenset({"other"}))
    SteppedOnce(session, kept)([program])
    assert len(stepped) == 2
    assert len(list(kept.iterdir())) == 1, "what can't be asked for any more is gone"


def test_programs_with_a_dynamic_linker_are_stepped_in_each_session(tmp_path: Path) -> None:
    assert not is_static(Path("/proc/self/exe").resolve())
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert not is_static(script)
