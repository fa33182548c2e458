"""Callouts behind an instruction: for each execution of it, and none where a thread comes there from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import clew
from clew.sessions.call_logs import CallLog
from clew.sessions.calls import Call
from clew.sessions.transforms.blocks import CodeBlock
from tests.programs.build import SOURCES, build_plain


@pytest.fixture(scope="module")
def behind() -> Path:
    return build_plain(SOURCES / "sessions/behind.c", "-O1")


def work(turns: int, add: int = 3) -> tuple[list[int], int]:
    """What rax is behind each execution of the addition, and what all comes to."""
    seen, total, is_next = [], 0, False
    while True:
        if not is_next:
            total += add
            seen.append(total)
        total = 2 * total + 1 & 0xFFFF
        turns -= 1
        if not turns:
            return seen, total
        is_next = turns & 1 == 1


def expected(n_calls: int) -> list[int]:
    return [value for number in range(1, n_calls + 1) for value in work(number % 16 + 1)[0]]


def at_addition(do: Callable[[clew.CodeInstruction], None]) -> Callable[[CodeBlock], None]:
    def show(block: CodeBlock) -> None:
        for one in block:
            if one.mnemonic == "add" and one.operands == "rax,3":
                do(one)

    return show


def run(program: Path, path: Path, n_calls: int, often_us: int) -> list[str]:
    return [str(one) for one in (program, path, n_calls, often_us)]


@pytest.mark.parametrize("mode", ["coverage", "counts", "full"])
@pytest.mark.parametrize("relayout", ["", "4"])
def test_each_execution_is_recorded_and_no_jump_behind_it(
    behind: Path, tmp_path: Path, mode: str, relayout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if relayout:
        monkeypatch.setenv("CLEW_RELAYOUT", relayout)
    n_calls = 60_000
    with clew.spawn(run(behind, tmp_path / "out", n_calls, 50), mode=mode) as session:
        after, before = (session.log(capture=["rax", "arg2", "rip"]) for _ in range(2))
        some = session.log(capture=["rax"], condition="arg2 == 0 && rax % 2 == 1")

        def show(one: clew.CodeInstruction) -> None:
            one.record(after, after=True)
            one.record(some, after=True)
            one.record(before)

        session.transform("behind!work", at_addition(show))
        session.resume()
        assert session.wait(120) == 0
        rows = after.read().to_pylist()
        in_front = before.read().to_pylist()
        odd = some.read()["rax"].to_pylist()
        assert not session.trace.verify()
    total, n_handled = (int(word) for word in (tmp_path / "out").read_text().split())
    own = [row["rax"] for row in rows if row["arg2"] == 0]
    assert n_handled > 10
    assert own == expected(n_calls)
    assert odd == [value for value in own if value % 2 == 1]
    assert [row["rax"] for row in rows if row["arg2"] == 1] == n_handled * work(5)[0]
    for who in (0, 1):
        left = [row["rax"] for row in rows if row["arg2"] == who]
        assert left == [row["rax"] + 3 for row in in_front if row["arg2"] == who]
    assert {row["rip"] - row["pc"] for row in rows} == {0}
    assert total == sum(work(number % 16 + 1)[1] for number in range(1, n_calls + 1))


@pytest.mark.parametrize("often_us", [0, 5000])
def test_each_execution_calls_back_and_may_change_what_it_left(behind: Path, tmp_path: Path, often_us: int) -> None:
    n_calls = 200
    seen: list[int] = []

    def change(call: Call) -> None:
        seen.append(int(call["rax"] or 0) if call["arg2"] == 0 else -1)
        call.registers["rax"] += 2

    with clew.spawn(run(behind, tmp_path / "out", n_calls, often_us)) as session:
        session.transform(
            "behind!work", at_addition(lambda one: one.callout(change, capture=["rax", "arg2"], after=True))
        )
        session.resume()
        assert session.wait(120) == 0
        assert not session.trace.verify()
    total, n_handled = (int(word) for word in (tmp_path / "out").read_text().split())
    assert total == sum(work(number % 16 + 1, 5)[1] for number in range(1, n_calls + 1))
    values = [value - 2 for number in range(1, n_calls + 1) for value in work(number % 16 + 1, 5)[0]]
    assert [value for value in seen if value >= 0] == values
    assert seen.count(-1) == n_handled * len(work(5)[0])


def test_what_ends_a_block_has_nothing_behind_it(behind: Path, tmp_path: Path) -> None:
    errors: list[str] = []

    def show(block: CodeBlock) -> None:
        if block.ends_with_branch:
            try:
                block[-1].callout(lambda call: None, after=True)
            except clew.ClewError as error:
                errors.append(str(error))

    with clew.spawn(run(behind, tmp_path / "out", 3, 0)) as session:
        session.transform("behind!work", show)
        session.resume()
        session.wait(60)
    assert errors and all("can't have something behind it" in error for error in errors)


def test_what_is_left_out_has_callouts_behind_it_all_the_same(behind: Path, tmp_path: Path) -> None:
    logs: list[CallLog] = []

    def leave_out(one: clew.CodeInstruction) -> None:
        one.drop()
        one.record(logs[0], after=True)

    with clew.spawn(run(behind, tmp_path / "out", 50, 0)) as session:
        logs.append(session.log(capture=["rax"]))
        session.transform("behind!work", at_addition(leave_out))
        session.resume()
        session.wait(60)
        found = logs[0].read()["rax"].to_pylist()
    assert found == [value for number in range(1, 51) for value in work(number % 16 + 1, 0)[0]]
