"""Transformers: blocks are shown once, and what is executed is what was said of them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.sessions.calls import Call
from clew.sessions.transforms.blocks import CodeBlock
from tests.e2e import runs
from tests.fuzz.edits import build_edited, fixed_program
from tests.fuzz.program import Variant
from tests.sessions.called_output import TURNS, output_of, total_with

_MODES = ("coverage", "counts", "full")


def keep(block: CodeBlock) -> None:
    pass


@pytest.mark.parametrize("mode", _MODES)
def test_what_is_kept_is_shown_once(called: Path, mode: str) -> None:
    shown: Counter[tuple[int, bytes]] = Counter()
    with clew.spawn([called, str(TURNS)], mode=mode, stdout=subprocess.PIPE) as session:
        transformer = session.transform(None, lambda block: shown.update([(block.address, block.code)]))
        session.resume()
        assert session.stdout is not None
        output = session.stdout.read()
        session.wait(60)
        assert not session.trace.verify()
        blocks = {(row["app_pc"], row["size_bytes"]) for row in session.trace.blocks.to_pylist()}
    assert output == output_of(called)
    assert set(shown.values()) == {1}
    assert transformer.n_blocks == len(shown) and not transformer.errors
    starts = {address for address, _ in shown}
    assert len({pc for pc, _ in blocks} - starts) < len(blocks) / 20, "all but what is in critical sections is shown"


def test_a_block_tells_what_it_does(called: Path) -> None:
    seen: list[Any] = []
    with clew.spawn([called, "1"]) as session:
        session.transform("called!add", lambda block: seen.extend((block, *block, block.name)))
        address = session.find("called!add")
        session.resume()
        session.wait(60)
    block, first, last, name = seen
    assert (block.address, len(block), block.size_bytes) == (address, 2, 5)
    assert name == "called!add+0x0" and (block.pid, block.tid) == (session.pid, session.pid)
    assert str(first) == f"{address:#x} lea rax,[rdi+rsi]"
    assert (first.reads, first.writes, first.memory) == (("rdi", "rsi"), ("rax",), ())
    assert first.groups == ("x64",) and not first.is_last
    assert last.is_last and last.groups[0] == "return" and block.ends_with_branch
    (access,) = last.memory
    assert (access.base, access.size_bytes, access.access) == ("rsp", 8, "r")


@pytest.mark.parametrize("mode", _MODES)
def test_instructions_are_replaced_by_text(called: Path, mode: str) -> None:
    with clew.spawn([called, str(TURNS)], mode=mode, stdout=subprocess.PIPE) as session:

        @session.transform("called!add")
        def multiply(block: CodeBlock) -> None:
            block[0].replace("mov rax, rdi; imul rax, rsi")

        session.resume()
        assert session.stdout is not None
        assert int(session.stdout.read()) == total_with(lambda a, b: a * b)
        session.wait(60)
        assert multiply.n_blocks == 1 and not multiply.errors
        assert not session.trace.verify()
        if mode != "coverage":
            rows = session.trace.report(by="function", n=100)
            assert [row["calls"] for row in rows if row["function"] == "add"] == [3 * TURNS]


def test_code_is_put_in_front_and_behind_and_left_out(called: Path) -> None:
    def change(block: CodeBlock) -> None:
        block[0].insert_before("shl rdi, 1")
        block[0].insert_before("add rdi, 5")
        block[0].insert_after("sub rax, 2")
        block[1].insert_before(b"\x48\xff\xc0")  # inc rax

    def leave_out(block: CodeBlock) -> None:
        block[0].insert_before("mov rax, rsi")
        block[0].drop()

    for change_it, add in ((change, lambda a, b: 2 * a + 5 + b - 2 + 1), (leave_out, lambda a, b: b)):
        with clew.spawn([called, str(TURNS)], stdout=subprocess.PIPE) as session:
            session.transform("called!add", change_it)
            session.resume()
            assert session.stdout is not None
            assert int(session.stdout.read()) == total_with(add)


@pytest.mark.parametrize("variant", [Variant.PLAIN, Variant.TIMER], ids=lambda variant: variant.value)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 8))])
def test_random_edits_do_what_they_say(seed: int, variant: Variant, tmp_path: Path) -> None:
    edited = build_edited(fixed_program(seed, 10, variant), seed, tmp_path)
    native = runs.run([*runs.FIXED_LAYOUT, edited.edited], timeout_seconds=20)
    assert native.status == 0 and edited.n_edits > 50
    for mode in ("counts", "full"):
        with clew.spawn([*runs.FIXED_LAYOUT, edited.plain], mode=mode, stdout=subprocess.PIPE) as session:
            transformer = session.transform(str(edited.plain), edited.transform)
            session.resume()
            assert session.stdout is not None
            assert session.wait(60) == 0
            assert session.stdout.read() == native.stdout
            assert not transformer.errors and not session.trace.verify()


def test_what_a_transformer_raises_is_raised_and_the_program_goes_on(called: Path) -> None:
    def fail(block: CodeBlock) -> None:
        raise LookupError("no such thing")

    with clew.spawn([called, str(TURNS)], stdout=subprocess.PIPE) as session:
        session.transform("called", fail)
        session.resume()
        assert session.stdout is not None
        assert session.stdout.read() == output_of(called)
        with pytest.raises(LookupError):
            session.wait(60)


def test_callouts_at_any_instruction(called: Path) -> None:
    results: list[int] = []
    with clew.spawn([called, str(TURNS)], stdout=subprocess.PIPE) as session:
        log = session.log(capture=["rax", "rdi + rsi"])

        def change(block: CodeBlock) -> None:
            block[-1].callout(lambda call: results.append(call.registers["rax"]), condition="rsi != 3")
            block[-1].record(log)

        session.transform("called!add", change)
        session.resume()
        session.wait(60)
        table = log.read()
        assert session.stdout is not None
        assert session.stdout.read() == output_of(called)
        assert not session.trace.verify()
    expected = [a + b for n in range(TURNS) for a, b in ((n, 1), (2, n), (n, 3))]
    assert table["rax"].to_pylist() == table["rdi + rsi"].to_pylist() == expected
    assert results == [a + b for n in range(TURNS) for a, b in ((n, 1), (2, n)) if b != 3]


def test_a_callout_changes_registers(called: Path) -> None:
    def set_result(call: Call) -> None:
        call.registers["rax"] = 7

    with clew.spawn([called, str(TURNS)], stdout=subprocess.PIPE) as session:
        session.transform("called!add", lambda block: block[-1].callout(set_result))
        session.resume()
        assert session.stdout is not None
        assert int(session.stdout.read()) == total_with(lambda a, b: 7)


def test_threads_share_what_was_said(called: Path) -> None:
    shown: Counter[int] = Counter()
    with clew.spawn([called, "2000", "8"], stdout=subprocess.PIPE) as session:

        @session.transform("called")
        def count(block: CodeBlock) -> None:
            shown[block.address] += 1
            if block.name == "called!add+0x0":
                block[0].insert_after("add rax, 1")

        session.resume()
        assert session.stdout is not None
        assert int(session.stdout.read()) == 8 * total_with(lambda a, b: a + b + 1, 2000)
    assert set(shown.values()) == {1} and not count.errors


def test_what_is_removed_is_as_it_was(called: Path) -> None:
    # So many that it is not done before it is paused.
    turns = 200_000
    with clew.spawn([called, str(turns)], stdout=subprocess.PIPE) as session:
        transformer = session.transform("called!add", lambda block: block[0].replace("xor eax, eax"))

        @session.on_call("handle")
        def count(call: Call) -> None:
            pass

        session.resume()
        assert session.stdout is not None
        while count.n_calls < 10:
            time.sleep(0.001)
        session.pause()
        transformer.remove()
        count.remove()
        n_calls = count.n_calls
        session.resume()
        total = int(session.stdout.read())
    # Of the turn that was under way, and of one whose call was not told of yet, some calls were as they are.
    most, least = (total_with(lambda a, b: a + b, turns) - _sums(n) for n in (n_calls - 1, n_calls + 2))
    assert least <= total <= most


def _sums(n_turns: int) -> int:
    return sum(n + 1 + 2 + n + n + 3 for n in range(n_turns))


def test_children_and_executed_programs(called: Path) -> None:
    command = ["sh", "-c", f"{called} {TURNS}; {called} {TURNS}; true"]
    with clew.spawn(command, stdout=subprocess.PIPE) as session:
        transformer = session.transform("called!add", lambda block: block[0].replace("xor eax, eax"))
        session.resume()
        assert session.stdout is not None
        lines = session.stdout.read().split()
        session.wait(60)
    assert [int(line) for line in lines] == [total_with(lambda a, b: 0)] * 2
    assert transformer.n_blocks == 2


@pytest.mark.long
def test_who_takes_too_long_is_not_waited_for(called: Path) -> None:
    def sleep(block: CodeBlock) -> None:
        time.sleep(3)
        block[0].replace("xor eax, eax")

    with clew.spawn([called, str(TURNS)], stdout=subprocess.PIPE) as session:
        session.transform("called!add", sleep)
        session.resume()
        assert session.stdout is not None
        assert session.stdout.read() == output_of(called)
        session.wait(60)
        assert session.n_overdue == 1


@pytest.mark.long
def test_a_killed_controller_leaves_the_program_running(called: Path, tmp_path: Path) -> None:
    script = f"""
import clew, time
trace, output = {str(tmp_path / "left.clew")!r}, open({str(tmp_path / "out")!r}, "wb")
session = clew.spawn([{str(called)!r}, "{TURNS}"], output=trace, stdout=output)
print(session.pid, flush=True)
session.transform("called!add", lambda block: time.sleep(60))
session.resume()
print("waits", flush=True)
session.wait()
"""
    controller = subprocess.Popen(
        [runs.CLEW[0], "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=runs.environment()
    )
    assert controller.stdout is not None
    pid = int(controller.stdout.readline())
    controller.stdout.readline()
    time.sleep(0.5)
    controller.send_signal(signal.SIGKILL)
    controller.wait()
    deadline = time.monotonic() + 60
    while not (tmp_path / "out").read_bytes() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (tmp_path / "out").read_bytes() == output_of(called)
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{pid}") or "Z" in Path(f"/proc/{pid}/stat").read_text()
