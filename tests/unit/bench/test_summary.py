"""From runs to rows: what is right, wrong, cut off, or not the same work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.counted import BLOCKS
from bench.measure import Measurement
from bench.ratios import ratios
from bench.rounds import Plan, Runs, find_limit
from bench.summary import describe_cut, describe_wrong, summarize, summarize_groups
from bench.tools import NATIVE_NAME, Tool
from bench.workloads import Workload

TRUE = Workload("true", "start", ("true",))
GZIP = Workload("gzip", "short", ("gzip",))
PERL = Workload("perl", "short", ("perl",))


def run(cpu_seconds: float, **more: object) -> Measurement:
    plain = Measurement(cpu_seconds, cpu_seconds, 1000, status=0, stdout_digest="right")
    return replace(plain, **more)  # type: ignore[arg-type]


def tool(name: str, *, is_peer: bool = True, same_code_as: str = "") -> Tool:
    return Tool(name, name, lambda command, _: list(command), {}, is_peer=is_peer, same_code_as=same_code_as)


COUNTS = tool("counts", is_peer=False)
PEER = tool("peer")
FOLLOWER = tool("follower", same_code_as="peer")


def make_runs(**peer: list[Measurement]) -> Runs:
    """Native 0.1 s, counts 0.2 s above its start; a peer's runs by program."""
    runs = Runs()
    for workload in (TRUE, GZIP, PERL):
        runs.measured[workload.key, NATIVE_NAME] = [run(0.1)]
        runs.measured[workload.key, "counts"] = [run(0.3 if workload is TRUE else 0.5, counted={BLOCKS: 1000})]
        for name in ("peer", "follower"):
            runs.measured[workload.key, name] = [run(0.2)] if workload is TRUE else peer.get(workload.name, [run(1.2)])
    return runs


def summarize_peer(runs: Runs) -> dict[str, dict[str, object]]:
    """What is said of gzip, by tool."""
    rows = summarize(TRUE, [GZIP, PERL], [COUNTS, PEER, FOLLOWER], runs, limit_ratio=60.0)
    found: dict[str, dict[str, object]] = rows[1]["modes"]
    return found


def test_each_tools_own_start_is_taken_off() -> None:
    found = summarize_peer(make_runs())
    assert found["counts"]["ratio"] == pytest.approx({"median": 2.0, "least": 2.0, "greatest": 2.0})
    assert found["peer"]["ratio"] == pytest.approx({"median": 10.0, "least": 10.0, "greatest": 10.0})


def test_a_crash_is_shown_by_its_signal_and_has_no_ratio() -> None:
    found = summarize_peer(make_runs(gzip=[run(1.2, status=139, said="oh")]))["peer"]
    assert (found["failure"], found["said"], found["output_right"]) == ("SIGSEGV", "oh", False)
    assert "ratio" not in found


def test_what_went_wrong_sometimes_is_told_as_often_as_it_was() -> None:
    native = [run(0.1)]
    assert describe_wrong([run(1), run(1)], native) == ""
    assert describe_wrong([run(1), run(1, stdout_digest="other")], native) == "other output, 1 of 2 times"
    assert describe_wrong([run(1, status=70)], native) == "status 70"
    assert describe_wrong([run(1, was_cut=True, status=137)], native) == "hangs"


def test_what_was_cut_off_says_how_slow_it_is_at_least() -> None:
    found = summarize_peer(make_runs(gzip=[run(7.2, was_cut=True, status=137)]))["peer"]
    assert (found["failure"], found["at_least"]) == ("> 60", pytest.approx(70.0))


def test_what_was_cut_off_having_done_nearly_nothing_hangs() -> None:
    busy, idle = run(50.0, wall_seconds=400.0), run(5.0, wall_seconds=400.0)
    assert [describe_cut(ratio, 60, busy) for ratio in (61, 45)] == ["> 60", "> 45"]
    assert describe_cut(45, 60, idle) == "hangs"


def test_what_was_not_run_after_a_cut_says_what_the_shorter_run_came_to() -> None:
    runs = make_runs(perl=[run(7.2, was_cut=True, status=137)])
    del runs.measured[GZIP.key, "peer"]
    runs.spared[GZIP.key, "peer"] = PERL.key
    found = summarize_peer(runs)["peer"]
    assert (found["failure"], found["at_least"]) == ("> 60 when short", pytest.approx(70.0))


def test_who_counts_a_part_of_it_is_not_in_the_mean_and_who_follows_the_same_code_neither() -> None:
    runs = make_runs(gzip=[run(1.2, counted={BLOCKS: 20})], perl=[run(2.2, counted={BLOCKS: 990})])
    tools = [COUNTS, PEER, FOLLOWER]
    rows = summarize(TRUE, [GZIP, PERL], tools, runs, limit_ratio=60.0)
    assert [row["modes"]["follower"].get("share") for row in rows] == [None, 0.02, 0.99]
    means = summarize_groups(rows, tools)["short"]
    assert means["counts"] == {"mean": 2.0, "programs": 2, "of": 2}
    assert means["peer"] == {"mean": 20.0, "programs": 1, "of": 2, "counts_mean": 2.0}


def test_a_wrong_output_of_clew_makes_its_mean_void() -> None:
    runs = make_runs()
    runs.measured[GZIP.key, "counts"] = [run(0.5, status=1)]
    rows = summarize(TRUE, [GZIP, PERL], [COUNTS], runs, limit_ratio=60.0)
    assert summarize_groups(rows, [COUNTS]) == {}


def test_the_limit_grows_with_native_and_with_the_tools_own_start() -> None:
    plan = Plan(rounds=1, peer_rounds={}, limit_ratio=60.0)
    runs = make_runs()
    limit = find_limit(GZIP, PEER, TRUE, runs, plan)
    assert ratios([limit.cpu_seconds], [0.1], 0.2)[0] > plan.limit_ratio
    assert limit.wall_seconds > limit.cpu_seconds
    runs.measured[GZIP.key, NATIVE_NAME] = [run(2.0)]
    assert find_limit(GZIP, PEER, TRUE, runs, plan).cpu_seconds > limit.cpu_seconds
