"""What a transformer asks for and can't be done is told, and the block is executed as it is."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import clew
from clew.sessions.transforms.blocks import CodeBlock
from clew.sessions.transforms.refused import Refused

TURNS = 50


def output_of(called: Path) -> bytes:
    return subprocess.run([called, str(TURNS), "1"], stdout=subprocess.PIPE, check=False).stdout


@pytest.mark.long
def test_what_a_block_cannot_be_given_is_told(called: Path) -> None:
    wrong = {
        "replace": lambda block: block[1].replace("nop"),
        "drop": lambda block: block[1].drop(),
        "behind": lambda block: block[1].insert_after("nop"),
        "branch": lambda block: block[0].insert_before("jmp rax"),
        "call": lambda block: block[0].insert_before(b"\x0f\x05"),
        "gs": lambda block: block[0].replace("mov rax, gs:[0]"),
        "bytes": lambda block: block[0].replace(b"\x06"),
        "text": lambda block: block[0].replace("frobnicate rax"),
    }
    for name, change in wrong.items():
        told = pytest.warns(UserWarning, match="left as they are")
        with told, clew.spawn([called, str(TURNS)], stdout=subprocess.PIPE) as session:
            transformer = session.transform("called!add", change)
            session.resume()
            assert session.stdout is not None
            assert session.stdout.read() == output_of(called), name
        (error,) = transformer.errors
        assert ("frobnicate" if name == "text" else "block 0x") in error


def test_what_the_runtime_refuses_is_told(called: Path) -> None:
    def change(block: CodeBlock) -> None:
        block[0].insert_before(b"\x90" * 9000)

    with (
        pytest.warns(UserWarning, match="1 blocks were left as they are"),
        clew.spawn([called, str(TURNS)], stdout=subprocess.PIPE) as session,
    ):
        transformer = session.transform("called!add", change)
        beside = session.transform("called!main", lambda block: block[0].insert_before("nop"))
        address = session.find("called!add")
        session.resume()
        assert session.stdout is not None
        assert session.stdout.read() == output_of(called)
        session.wait(60)
    (error,) = transformer.errors
    assert f"block {address:#x}: the runtime could not take" in error
    assert beside.n_blocks > 1 and not beside.errors
    assert session._worker.result().statistics["blocks_refused"] == 1


def test_what_the_runtime_refuses_is_told_while_it_runs(called: Path) -> None:
    shown: list[int] = []
    with pytest.warns(UserWarning, match="left as they are"), clew.spawn([called, "100000000"]) as session:

        @session.transform("called!add")
        def refused(block: CodeBlock) -> None:
            shown.append(block.address)
            block[0].insert_before(b"\x90" * 9000)

        session.resume()
        deadline = time.monotonic() + 30
        while not refused.errors and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [f"block {address:#x}: " in error for address, error in zip(shown, refused.errors, strict=True)] == [
            True
        ]
        assert session.statistics["blocks_refused"] == 1


def _process(pid: int, counts: list[int]) -> Any:
    return _Followed(pid=pid, shared=SimpleNamespace(status_u32=lambda _name: counts[0]))


class _Followed:
    def __init__(self, pid: int, shared: Any) -> None:
        self.pid, self.shared = pid, shared


def test_which_block_it_was_is_told_where_that_is_known() -> None:
    refused, counts, errors = Refused(), [0], list[str]()
    process = _process(7, counts)
    refused.give(process, 70, 0x1000, b"", [errors])
    refused.give(process, 70, 0x1000, b"x", [errors])
    # The same thread asks about the next one: this one was taken.
    refused.look(process, 70)
    refused.give(process, 70, 0x2000, b"xy", [errors])
    refused.give(process, 71, 0x3000, b"xyz", [errors])
    counts[0] = 1
    refused.look_at_all()
    assert ["or another one of 2 blocks" in one for one in errors] == [True, True]
    assert [one[:12] for one in errors] == ["block 0x2000", "block 0x3000"]
    refused.give(process, 70, 0x4000, b"xy", [errors])
    counts[0] = 2
    refused.look(process)
    assert errors[2:] == ["block 0x4000: the runtime could not take 2 bytes of changes"]
    assert refused.finish(2) == 0


def test_what_ended_before_it_was_looked_at_is_told_in_the_end() -> None:
    def fail(_name: str) -> int:
        raise ValueError("mmap closed or invalid")

    gone: list[Any] = [_Followed(pid=pid, shared=SimpleNamespace(status_u32=fail)) for pid in (1, 2)]
    refused, errors = Refused(), list[str]()
    refused.give(gone[0], 1, 0x1000, b"x", [errors])
    refused.look_at_all()
    assert not errors
    assert refused.finish(1) == 0 and len(errors) == 1
    refused, errors = Refused(), []
    for one in gone:
        refused.give(one, one.pid, 0x1000, b"x", [errors])
    assert refused.finish(1) == 1 and not errors, "it may be any of two"
