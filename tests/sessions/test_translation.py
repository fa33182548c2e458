"""What is translated: listed, made anew on request, made ahead for children."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import clew
from clew.errors import ControlError, FilterError, UsageError
from clew.sessions.transforms.blocks import CodeBlock
from tests.programs.build import SOURCES, build_plain

TURNS = 20_000
N_CHILDREN = 12


@pytest.fixture(scope="session")
def fork_server() -> Path:
    return build_plain(SOURCES / "sessions/fork_server.c", "-O1", "-fno-inline")


def function_calls(trace: clew.Trace, image: str) -> Counter[str]:
    calls: Counter[str] = Counter()
    for row in trace.report(by="function", n=10_000):
        if str(row["image"]).endswith(image):
            calls[row["function"]] += row["calls"]
    return calls


@pytest.mark.parametrize(
    ("mode", "turns"),
    [
        ("counts", 1_000_000),
        pytest.param("counts", 2_000_000, marks=pytest.mark.long),
        pytest.param("full", 1_000_000, marks=pytest.mark.long),
    ],
)
def test_counts_are_exact_over_a_hundred_invalidations(called: Path, mode: str, turns: int) -> None:
    with clew.spawn([called, str(turns), "2"], mode=mode, stdout=subprocess.PIPE) as session:
        session.resume()
        assert session.stdout is not None
        expected = session.stdout.read()
        session.wait(120)
        plain = session.trace
        calls, instructions = function_calls(plain, "called"), plain.summary()["totals"]["instructions"]
    n_done = 0
    with clew.spawn([called, str(turns), "2"], mode=mode, stdout=subprocess.PIPE) as session:
        session.resume()
        for number in range(100):
            try:
                session.invalidate(("called", "called!add", None)[number % 3])
            except ControlError:
                break
            n_done += 1
        assert session.stdout is not None
        assert session.stdout.read() == expected
        session.wait(120)
        assert n_done > 5
        trace = session.trace
        assert not trace.verify()
        assert function_calls(trace, "called") == calls
        # What waiting for a thread takes is another matter each time.
        assert abs(trace.summary()["totals"]["instructions"] - instructions) < instructions / 100


def test_what_is_invalidated_is_translated_anew_and_shown_anew(called: Path) -> None:
    shown: Counter[int] = Counter()
    with clew.spawn([called, "1000000000"]) as session:
        session.transform("called!add", lambda block: shown.update([block.address]))
        address = session.find("called!add")

        def run_until_shown(n_times: int) -> None:
            session.resume()
            # It is shown before it is translated.
            while shown[address] < n_times or address not in session.translated()["address"]:
                time.sleep(0.001)
            session.pause()

        run_until_shown(1)
        for n_times in range(2, 5):
            session.invalidate("called!add")
            run_until_shown(n_times)
        before = session.statistics["fragments"]
        session.invalidate(f"{address:#x}-{address + 1:#x}")
        run_until_shown(5)
        assert before < session.statistics["fragments"] < before + 200
        with pytest.raises(ControlError, match="nothing that is loaded"):
            session.invalidate("no_such_image")
        with pytest.raises(FilterError):
            session.invalidate("")


def test_what_is_translated_is_listed(called: Path) -> None:
    with clew.spawn([called, "1000000000"]) as session:
        address, main = session.find("called!add"), session.find("called!main")
        first = session.translated()
        assert address not in first["address"]
        session.resume()
        session.add_breakpoint("called!handle")
        session.wait_for_stop(30)
        blocks = session.translated()
        assert (np.diff(blocks["address"].astype(np.int64)) > 0).all()
        (row,) = blocks[blocks["address"] == address]
        assert (int(row["size"]), int(row["n_instructions"])) == (5, 2)
        assert main in blocks["address"]
        session.invalidate("called!add")
        assert address in session.translated()["address"], "threads see to it when they go on"
        session.resume()
        session.wait_for_stop(30)
        assert address in session.translated()["address"], "it was executed again"
        session.add_breakpoint("called!turn")
        session.invalidate("called!add")
        session.resume()
        session.wait_for_stop(30)
        assert address not in session.translated()["address"]
        with pytest.raises(ControlError):
            session.translated(1)


def run_server(
    fork_server: Path, offsets: list[int] | None, output: Path
) -> tuple[dict[str, int], list[int], Counter[str], int]:
    """What a run of the server comes to: the runtime's numbers; the program's blocks, as distances from main; how often
    functions were called; and what it printed. Blocks at `offsets` are asked for before it forks."""
    with clew.spawn([fork_server, str(N_CHILDREN)], stdout=subprocess.PIPE, output=output) as session:
        main = session.find("fork_server!main")
        (image,) = (one for one in session.images if one.name == "fork_server")
        session.add_breakpoint("fork_server!serve")
        session.resume()
        session.wait_for_stop(30)
        if offsets is not None:
            session.prefetch(main + offset for offset in offsets)
            assert session.statistics["prefetched"] == 0, "a stopped process translates nothing"
        session.remove_breakpoint("fork_server!serve")
        session.resume()
        session.wait(60)
        assert session.stdout is not None
        total = int(session.stdout.read())
        statistics, trace = session.statistics, session.trace
        assert not trace.verify()
        blocks = [row["app_pc"] - main for row in trace.blocks.to_pylist() if image.start <= row["app_pc"] < image.end]
        return statistics, sorted(set(blocks)), function_calls(trace, "fork_server"), total


def test_children_have_what_was_translated_ahead(fork_server: Path, tmp_path: Path) -> None:
    plain, blocks, calls, total = run_server(fork_server, None, tmp_path / "plain.clew")
    ahead, others, same_calls, same = run_server(fork_server, blocks, tmp_path / "ahead.clew")
    assert (others, same_calls, same) == (blocks, calls, total)
    assert calls["answer"] == calls["step_10"] == N_CHILDREN
    n_ahead = ahead["prefetched"]
    assert plain["prefetched"] == 0 and n_ahead > 80 and ahead["prefetch_refused"] < 5
    # What a child has of its parent counts as its own. Each executes a hundred blocks that its parent never did.
    n_saved = plain["fragments"] + (N_CHILDREN + 1) * n_ahead - ahead["fragments"]
    assert n_saved > N_CHILDREN * 100


@pytest.mark.parametrize("mode", ["counts", "full"])
def test_addresses_of_no_code_are_refused(called: Path, mode: str) -> None:
    with clew.spawn([called, str(TURNS)], mode=mode, stdout=subprocess.PIPE) as session:
        add = session.find("called!add")
        stack = next(thread.registers["rsp"] for thread in session.threads if thread.registers)
        hostile = [0, 1, stack, (1 << 64) - 1, (1 << 64) - 15, 1 << 47, (1 << 47) - 1, 0xFFFFFFFFFF600000, 0x10000]
        session.prefetch([*hostile, add, add, add + 1])
        session.resume()
        assert session.stdout is not None
        output = session.stdout.read()
        session.wait(60)
        assert session.statistics["prefetched"] in (1, 2)
        assert session.statistics["prefetch_refused"] in (len(hostile), len(hostile) - 1)
        assert not session.trace.verify()
        rows = session.trace.report(by="function", n=100)
        assert [row["calls"] for row in rows if row["function"] == "add"] == [3 * TURNS]
    assert output == subprocess.run([called, str(TURNS)], stdout=subprocess.PIPE, check=False).stdout


def test_what_waits_is_bounded(called: Path) -> None:
    with clew.spawn([called, "1000000000"]) as session:
        add = session.find("called!add")
        session.prefetch([add] * 8192)
        with pytest.raises(ControlError, match="8192"):
            session.prefetch([add])
        with pytest.raises(UsageError):
            session.prefetch([-1])
        session.resume()
        session.prefetch(range(add, add + 20_000))
        assert session.statistics["prefetched"] > 100
        session.kill()


def test_modes_of_executed_code_have_nothing_ahead(called: Path) -> None:
    with clew.spawn([called, "1"], mode="coverage") as session, pytest.raises(ControlError, match="coverage"):
        session.prefetch([session.find("called!add")])


def test_a_transformer_is_shown_what_is_executed(called: Path) -> None:
    shown: list[int] = []

    def look(block: CodeBlock) -> None:
        shown.append(block.address)

    with clew.spawn([called, "3"], stdout=subprocess.PIPE) as session:
        session.transform("called!add", look)
        add = session.find("called!add")
        session.prefetch([add])
        session.resume()
        session.wait(60)
        assert session.statistics["prefetch_refused"] == 1
    assert shown == [add]
