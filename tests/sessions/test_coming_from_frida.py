"""What docs/coming-from-frida.md says and no other test of sessions shows; and that each of its rows names a test."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import clew
from clew.process.shared_memory import MEMFD_NAME
from clew.protocol.codec import FlowKind

ROOT = Path(__file__).resolve().parents[2]


def test_each_row_names_a_test() -> None:
    known = set()
    for path in (ROOT / "tests/sessions").glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                known.add(f"{path.stem}::{node.name}")
    text = (ROOT / "docs/coming-from-frida.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 30
    for row in rows:
        named = re.findall(r"`(test_\w+::\w+)`", row)
        assert named, row
        assert set(named) <= known, row


def test_blocks_and_calls_are_counted(called: Path) -> None:
    with clew.spawn([called, "30"], stdout=subprocess.DEVNULL) as session:
        address = session.find("called!add")
        session.resume()
        session.wait(60)
        trace = session.trace
        block = next(row["block_id"] for row in trace.blocks.to_pylist() if row["app_pc"] == address)
        calls = {
            row["edge_id"]
            for row in trace.edges.to_pylist()
            if row["target_block_id"] == block and row["kind"] in ("call", "indirect_call")
        }
        counts = [row for row in trace.counts.to_pylist() if row["edge_id"] in calls]
    assert sum(row["executions"] for row in counts) == 90


def test_the_runtime_counts_what_it_does(called: Path) -> None:
    with clew.spawn([called, "30"], stdout=subprocess.DEVNULL) as session:
        before = session.statistics
        session.resume()
        session.wait(60)
        numbers = session.statistics
    assert numbers["fragments"] > before["fragments"]
    assert numbers["table_misses"] + numbers["entries_indirect"] > 0 and numbers["lost_records"] == 0


def test_events_come_by_themselves(called: Path) -> None:
    with clew.spawn([called, "1000000000"], stdout=subprocess.DEVNULL) as session:
        session.follow(events={"call"}, on_full="drop")
        session.resume()
        start = time.monotonic()
        batches = iter(session.events())
        assert len(next(batches)) and len(next(batches))
        assert time.monotonic() - start < 10


def test_nothing_is_to_be_collected(called: Path) -> None:
    with clew.spawn([called, "1000000000"], stdout=subprocess.DEVNULL) as session:
        transformer = session.transform("called!add", lambda block: None)
        session.resume()
        for _ in range(3):
            session.pause()
            session.resume()
        transformer.remove()
        session.unfollow()
        maps = Path(f"/proc/{session.pid}/maps")
        followed = maps.read_text(encoding="utf-8")
        session.detach()
        left = maps.read_text(encoding="utf-8")
        os.kill(session.pid, signal.SIGKILL)
    assert MEMFD_NAME in followed
    assert MEMFD_NAME not in left and len(left.splitlines()) < len(followed.splitlines()), "the code cache has gone"


def test_code_that_is_changed_is_seen(called: Path) -> None:
    with clew.spawn([called, "50"], stdout=subprocess.PIPE) as session:
        session.follow(events={"exec"})
        address = session.find("called!add")
        returns: list[int] = []
        session.on_return("called!add", lambda call: returns.append(call.result))

        @session.on_call("called!add")
        def change(call: clew.Call) -> None:
            change.remove()
            # mov eax, 7; ret
            session.write(address, b"\xb8\x07\x00\x00\x00\xc3")

        session.resume()
        events = list(session.events())
        session.wait(60)
    assert set(returns[1:]) == {7}
    assert any((batch["address"][batch["kind"] == FlowKind.EXEC] == address + 5).any() for batch in events)
