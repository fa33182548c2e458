"""What the target adds up is what its calls were: no call is counted twice or left out, whoever makes it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import numpy as np
import pytest

import clew
from clew.errors import CaptureError, UsageError
from tests.programs.build import SOURCES, build_plain
from tests.sessions.test_call_probes import TURNS, expected_calls

_MODES = ("coverage", "counts", "full")


def by_key(rows: list[dict[str, Any]], key: str) -> dict[Any, dict[str, Any]]:
    """Rows by what they have in a column."""
    assert len({row[key] for row in rows}) == len(rows)
    return {row[key]: row for row in rows}


@pytest.mark.parametrize("mode", _MODES)
def test_threads_add_up_what_they_call(called: Path, mode: str) -> None:
    n_threads, turns = 4, 3000
    with clew.spawn([called, str(turns), str(n_threads)], mode=mode, stdout=DEVNULL) as session:
        total = session.aggregate("add", value="arg1")
        threads = session.aggregate("add", by="tid", value="arg1", condition="arg2 != 3")
        pairs = session.aggregate("add", by=["arg1 % 8", "arg2 == 3"])
        session.resume()
        session.wait(60)
        assert not session.trace.verify()
        (row,) = total.read().to_pylist()
        calls = expected_calls(turns)
        values = [first for first, _ in calls] * n_threads
        assert row == {
            "count": len(values),
            "sum": sum(values),
            "min": 0,
            "max": max(values),
            "mean": sum(values) / len(values),
            "n_missing": 0,
        }
        some = [first for first, second in calls if second != 3]
        rows = threads.read().to_pylist()
        assert len(by_key(rows, "tid")) == n_threads
        assert {(row["count"], row["sum"], row["max"]) for row in rows} == {(len(some), sum(some), max(some))}
        expected = Counter((first % 8, int(second == 3)) for first, second in calls)
        found = {(row["arg1 % 8"], row["arg2 == 3"]): row["count"] for row in pairs.read().to_pylist()}
        assert found == {key: n_threads * count for key, count in expected.items()}


def test_of_two_at_one_place_each_has_its_own(called: Path) -> None:
    with clew.spawn([called, str(TURNS)], stdout=DEVNULL) as session:
        log = session.log_calls("add", capture=["arg1"])
        aggregates = [session.aggregate("add", by=["arg2 % 3"], value="arg1") for _ in range(3)]
        seen: list[int] = []
        session.on_call("add", lambda call: seen.append(call.arguments[0]))
        session.resume()
        session.wait(60)
        values = log.read()["arg1"].to_pylist()
        assert values == seen == [first for first, _ in expected_calls(TURNS)]
        tables = [one.read() for one in aggregates]
        assert tables[0].equals(tables[1]) and tables[0].equals(tables[2])
        assert sum(tables[0]["sum"].to_pylist()) == sum(values)


def test_keys_and_values_of_all_kinds(called: Path) -> None:
    text = "str(*(char**)(arg1 + 8))"
    with clew.spawn([called, "10"], stdout=DEVNULL) as session:
        texts = session.aggregate("handle", by=[text, "(unsigned char)arg2", "comm"], value="-*(int*)arg1")
        floats = session.aggregate("scale", by="arg1", value="xmm1 - 4.5")
        singles = session.aggregate("scale", value="(float)xmm1")
        missing = session.aggregate("handle", by="*(int*)8", value="*(long*)8")
        half = session.aggregate("handle", value="*(long*)(arg1 * (*(int*)arg1 % 2))", histogram=True)
        session.resume()
        session.wait(60)
        name = called.name.encode()[:15]
        rows = by_key(texts.read().to_pylist(), text)
        assert {key: (row["count"], row["sum"], row["min"], row["max"]) for key, row in rows.items()} == {
            b"/odd": (5, -25, -9, -1),
            b"/even": (5, -20, -8, 0),
        }
        assert {(row["(unsigned char)arg2"], row["comm"]) for row in rows.values()} == {(200, name)}
        (row,) = floats.read().to_pylist()
        assert (row["arg1"], row["count"], row["sum"], row["min"], row["max"]) == (2, 10, 0.0, -4.5, 4.5)
        (row,) = singles.read().to_pylist()
        assert (row["sum"], row["max"], row["mean"]) == (45.0, 9.0, 4.5)
        (row,) = missing.read().to_pylist()
        assert [row[name] for name in ("*(int*)8", "count", "n_missing", "sum", "min", "mean")] == [
            None,
            10,
            10,
            0,
            None,
            None,
        ]
        (row,) = half.read().to_pylist()
        assert (row["count"], row["n_missing"], sum(row["histogram"])) == (10, 5, 5)


def test_histograms_have_quantiles(called: Path) -> None:
    turns = 5000
    with clew.spawn([called, str(turns)], stdout=DEVNULL) as session:
        one = session.aggregate("add", by="arg2 == 3", value="arg1 * arg1", histogram=True)
        signed = session.aggregate("add", value="(int)arg1 - 3", histogram=True)
        session.resume()
        session.wait(60)
        table, edges = one.read(), one.edges
        assert len(edges) == len(table["histogram"][0]) and (np.diff(edges.astype(float)) > 0).all()
        for row in table.to_pylist():
            values = [first**2 for first, second in expected_calls(turns) if int(second == 3) == row["arg2 == 3"]]
            counts = np.bincount(np.searchsorted(edges, np.array(values, np.uint64), "right") - 1, minlength=len(edges))
            assert row["histogram"] == counts.tolist()
            for name, quantile in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
                assert row[name] == pytest.approx(np.quantile(values, quantile), rel=0.13)
        (row,) = signed.read().to_pylist()
        assert row["min"] == -3 and row["histogram"][0] == sum(first <= 3 for first, _ in expected_calls(turns))


def test_no_call_counts_twice_where_signals_come() -> None:
    program = build_plain(SOURCES / "sessions/interrupted.c", "-O1", "-fno-inline", "-fno-ipa-cp")
    n_calls = 300_000
    with clew.spawn([program, str(n_calls)]) as session:
        one = session.aggregate("counted", by="arg2", value="arg1")
        log = session.log_calls("counted", condition="arg2 == 1")
        session.resume()
        assert session.wait(120) == 0
        rows = by_key(one.read().to_pylist(), "arg2")
        assert (rows[0]["count"], rows[0]["sum"]) == (n_calls, sum(range(n_calls)))
        n_handled = log.read().num_rows
        assert (rows[1]["count"], rows[1]["sum"]) == (n_handled, sum(range(n_handled)))


def test_children_and_programs_that_they_execute_count_too(called: Path) -> None:
    command = ["sh", "-c", f"{called} {TURNS}; {called} {TURNS} & {called} {TURNS} 2 & wait"]
    with clew.spawn(command, stdout=DEVNULL) as session:
        one = session.aggregate("called!add", by="pid", value="arg1")
        session.resume()
        session.wait(60)
        rows = one.read().to_pylist()
    assert sorted(row["count"] for row in rows) == [3 * TURNS, 3 * TURNS, 2 * 3 * TURNS]


def test_a_fork_begins_with_nothing() -> None:
    script = "import os\nos.getppid()\nif not os.fork(): os.getppid(); os._exit(0)\nos.wait()\nos.getppid()"
    with clew.spawn([sys.executable, "-c", script], stdout=DEVNULL) as session:
        one = session.aggregate("libc.so.6!getppid")
        own = session.aggregate("libc.so.6!getppid", by="pid")
        log = session.log_calls("libc.so.6!getppid")
        session.resume()
        assert session.wait(60) == 0
        expected = Counter(log.read()["pid"].to_pylist())
        assert len(expected) == 2
        assert one.read()["count"].to_pylist() == [expected.total()]
        assert {row["pid"]: row["count"] for row in own.read().to_pylist()} == expected


def test_processes_that_end_are_counted_once(called: Path) -> None:
    n_children = 12
    script = f"for i in $(seq {n_children}); do {called} 20000 & done; wait"
    with clew.spawn(["sh", "-c", script], stdout=DEVNULL) as session:
        one = session.aggregate("called!add", by=["arg2 == 3", "pid"], value="arg1")
        session.resume()
        told: Counter[int] = Counter()
        while session.state == "running":
            for row in one.read(clear=True).to_pylist():
                told[row["arg2 == 3"]] += row["count"]
            with contextlib.suppress(TimeoutError):
                session.wait(0.02)
        # A child that the shell has waited for may be left last all the same.
        assert session.wait_for_all(60)
        for row in one.read(clear=True).to_pylist():
            told[row["arg2 == 3"]] += row["count"]
        expected = Counter(int(second == 3) for _, second in expected_calls(20_000))
        assert told == {key: n_children * count for key, count in expected.items()}
        assert one.read().num_rows == 0
        assert not one._table._families or not one._table._families[-1], "what ended is forgotten"


def test_keys_behind_long_texts_are_kept(called: Path) -> None:
    with clew.spawn([called, "10"], stdout=DEVNULL) as session:
        keys = ["bytes(rsp, 60)", "str(*(char**)(arg1 + 8))", "*(int*)arg1 % 3"]
        one = session.aggregate("handle", by=keys)
        session.resume()
        session.wait(60)
        rows = one.read().to_pylist()
        assert Counter(row[keys[2]] for row in rows for _ in range(row["count"])) == {0: 4, 1: 3, 2: 3}
        assert {len(row[keys[0]]) for row in rows} == {40}, "as much as there is room for"


def test_it_is_read_cleared_and_ended_while_the_program_runs(called: Path) -> None:
    with clew.spawn([called, "1000000000", "3"], stdout=DEVNULL) as session:
        one = session.aggregate("add", by="arg2 == 3")
        log = session.log_calls("add", condition="arg1 == 0 && arg2 == 1")
        session.resume()
        total, looks = Counter[int](), 0
        while looks < 5:
            time.sleep(0.05)
            for row in one.read(clear=True).to_pylist():
                total[row["arg2 == 3"]] += row["count"]
            looks += 1
        session.pause()
        for row in one.read().to_pylist():
            total[row["arg2 == 3"]] += row["count"]
        assert one.read(clear=True).num_rows > 0 and one.read().num_rows == 0
        # Of each turn's three calls one has a 3, or begins with it; a thread may be in the middle of a turn.
        assert total[0] > 1000 and abs(total[0] - 2 * total[1]) <= 20
        assert 1 <= log.read().num_rows <= 3
        one.remove()
        session.resume()
        time.sleep(0.05)
        assert one.read().num_rows == 0
        session.kill()


def test_keys_that_find_no_room_are_counted(called: Path) -> None:
    with clew.spawn([called, "500"], stdout=DEVNULL) as session:
        one = session.aggregate("add", by=["arg1", "arg2"], max_keys=16)
        other = session.aggregate("add", by=["arg1"], max_keys=1000)
        session.resume()
        session.wait(60)
        counts = one.read()["count"].to_pylist()
        assert len(counts) >= 16 and sum(counts) + one.n_left_out == 1500 and one.n_left_out > 0
        assert sum(other.read()["count"].to_pylist()) + other.n_left_out == 1500
        assert other.n_left_out == 0


def test_what_can_not_be_added_up_is_refused(called: Path) -> None:
    with clew.spawn([called, "1"], stdout=DEVNULL) as session:
        for wrong in (
            {"by": ["arg1"] * 9},
            {"value": "str(arg1)"},
            {"histogram": True},
            {"max_keys": 0},
            {"by": ["arg1", "arg1"]},
            {"by": ["count"]},
            {"by": ["arg1"], "max_keys": 1 << 20},
        ):
            with pytest.raises(UsageError):
                session.aggregate("add", **wrong)
        with pytest.raises(CaptureError):
            session.aggregate("add", by=["arg1 +"])
        with pytest.raises(UsageError, match="are left"):
            for _ in range(100):
                session.aggregate("add", by=["arg1"], value="arg1", histogram=True, max_keys=16384)
        session.resume()
        session.wait(60)


def test_a_table_that_the_program_wrote_over_does_no_harm(called: Path) -> None:
    with clew.spawn([called, "1000000000"], stdout=subprocess.DEVNULL) as session:
        one = session.aggregate("add", by=["str(arg1)", "arg2"], value="arg1", histogram=True)
        session.resume()
        time.sleep(0.2)
        session.pause()
        tables = one._table._families[0][0]
        at, size_bytes = tables._start + one._table.shape.start, one._table.shape.size_bytes
        assert os.pwrite(tables._fd, np.random.default_rng(1).bytes(size_bytes), at) == size_bytes
        assert one.read().num_rows > 0
        assert one.n_left_out > 0
        session.resume()
        time.sleep(0.1)
        session.kill()
