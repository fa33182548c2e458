"""Replay and timeline of recorded programs: any place of an ordered thread equals its path read from the beginning."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random
from unittest.mock import Mock

import numpy as np
import numpy.typing as npt
import pytest

from clew.analysis.order import waypoints
from clew.analysis.replay.replay import PathReplay, Sought
from clew.analysis.replay.replay_tags import TagReplay
from clew.analysis.trace import Trace
from clew.errors import UsageError
from clew.protocol._generated import TickKind
from clew.protocol.words import EXIT_WORDS
from clew.server import replay_answers
from clew.server.container import decode_container
from clew.server.replay_answers import ProcessReplays
from clew.server.served_trace import ServedTrace
from tests.e2e import runs

STEP = 1 << 10


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("replay")
    (found / "text").write_bytes(Random(1).randbytes(4_000) + b"again and again " * 400)
    return found


def record(folder: Path, mode: str) -> Path:
    trace = folder / f"{mode}.clew"
    if not trace.exists():
        runs.record(["/usr/bin/gzip", "-kc", folder / "text"], trace, "--mode", mode)
    return trace


@pytest.fixture
def served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ServedTrace:
    """A trace of mode full, with waypoints close to each other."""
    monkeypatch.setattr(waypoints, "STEP_EXECUTIONS", STEP)
    return ServedTrace(record(folder, "full"), 0)


def replay_of(served: ServedTrace) -> PathReplay:
    replays = ProcessReplays(served, 0)
    found = replays.replay(replays.timeline.threads[0].tid)
    assert isinstance(found, PathReplay)
    return found


@cache
def path_blocks(trace: Path) -> npt.NDArray[np.int64]:
    return Trace(trace).path().blocks()


def read_all(served: ServedTrace, replay: PathReplay) -> np.ndarray:
    """All blocks of the thread as indices of the graph, by the path alone."""
    index = {block: number for number, block in enumerate(replay.graph.block_id.tolist())}
    ids, which = np.unique(path_blocks(served.trace.directory), return_inverse=True)
    return np.array([index[block] for block in ids.tolist()])[which]


def test_a_stretch_that_is_opened_again_reads_no_events(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = Trace(record(folder, "full"))
    stretches = trace.path().stretches
    read_events = Mock(wraps=stretches.file.read_events)
    monkeypatch.setattr(stretches.file, "read_events", read_events)
    number = len(stretches) - 1
    start = stretches[number].executions
    expected = path_blocks(trace.directory)[start : start + 1000].tolist()
    for _ in range(3):
        assert stretches.code.block_id[stretches.open(number).read(1000)].tolist() == expected
    assert read_events.call_count == 1


def test_any_place_equals_the_path_read_from_the_beginning(served: ServedTrace) -> None:
    replay, path = replay_of(served), Trace(served.trace.directory).path()
    blocks = read_all(served, replay)
    assert len(blocks) == replay.length > 100 * STEP
    sizes = np.append(0, np.cumsum(replay.graph.n_instructions[blocks]))
    random = Random(2)
    borders = path.stretches.file.places["block_executions"].astype(int).tolist()
    some = [random.randrange(replay.length) for _ in range(8)]
    for position in [0, 1, replay.length - 1, replay.length, *some, *borders, *(one - 1 for one in borders), *some]:
        state = replay.state(position)
        assert state.position == position
        assert state.block == (blocks[position] if position < replay.length else -1)
        assert state.recent.tolist() == blocks[max(position - 64, 0) : position].tolist()
        assert state.coming.tolist() == blocks[position : position + 16].tolist()
        assert state.instruction == sizes[position]
        place = path.find_instruction(int(sizes[position]))
        assert place.execution == position
        assert state.time_ns == path.time_at(place)
        assert state.calls is not None
        assert [call.return_address for call in state.calls] == path.calls_at(place).tolist()[-256:]
        ends = replay.graph.app_pc + replay.graph.size_bytes
        assert all(call.block < 0 or ends[call.block] == call.return_address for call in state.calls)
        assert any(call.block >= 0 for call in state.calls) == bool(state.calls)


def test_steps_forth_and_back_restore_the_state(served: ServedTrace) -> None:
    replay = replay_of(served)
    random = Random(3)
    for _ in range(20):
        position = random.randrange(replay.length)
        n = random.randrange(1, 5000)
        assert replay.step(replay.step(position, n), -n) == position or position + n > replay.length
        assert replay.state(replay.step(position, 1)).recent.tolist()[-1:] == [replay.state(position).block]
    assert replay.step(0, -5) == 0
    assert replay.step(0, replay.length + 5) == replay.length


def test_searches_find_what_a_look_at_all_blocks_finds(served: ServedTrace) -> None:
    replay = replay_of(served)
    blocks = read_all(served, replay)
    exits = np.array(EXIT_WORDS)[replay.graph.exit_kind[blocks]]
    places = {
        Sought.CALL: np.flatnonzero(np.isin(exits, ["call", "indirect_call"])),
        Sought.SYSTEM_CALL: np.flatnonzero(exits == "syscall"),
    }
    random = Random(4)
    for position in [0, replay.length, *(random.randrange(replay.length) for _ in range(4))]:
        for what, of_kind in places.items():
            behind, before = of_kind[of_kind > position], of_kind[of_kind < position]
            assert replay.find(what, position, back=False) == (behind[0] if len(behind) else None)
            assert replay.find(what, position, back=True) == (before[-1] if len(before) else None)
        block = int(blocks[random.randrange(replay.length)])
        runs_of = np.flatnonzero(blocks == block)
        behind, before = runs_of[runs_of > position], runs_of[runs_of < position]
        assert replay.find_block(block, position, back=False) == (behind[0] if len(behind) else None)
        assert replay.find_block(block, position, back=True) == (before[-1] if len(before) else None)
    assert replay.find(Sought.SIGNAL, 0, back=False) is None


def test_waypoints_laid_before_change_no_answer(served: ServedTrace) -> None:
    asked, laid = replay_of(served), replay_of(served)
    assert sum(1 for _ in laid.prepare()) >= laid.length // (2 * STEP)
    random = Random(5)
    for position in (random.randrange(asked.length) for _ in range(5)):
        one, other = asked.state(position), laid.state(position)
        assert (one.block, one.instruction, one.time_ns, one.calls) == (
            other.block,
            other.instruction,
            other.time_ns,
            other.calls,
        )
        assert one.recent.tolist() == other.recent.tolist()


def test_times_and_rare_blocks_are_found_as_without_waypoints(served: ServedTrace) -> None:
    replay = replay_of(served)
    for _ in replay.prepare():
        pass
    path = Trace(served.trace.directory).path()
    random = Random(6)
    first_ns, last_ns = (path.time_at(path.find_instruction(at)) for at in (0, path.instructions))
    times = [first_ns - 1, last_ns + 1, *(random.randrange(first_ns, last_ns) for _ in range(6))]
    assert [replay.find_time(ns) for ns in times] == [path.find_time(ns).execution for ns in times]
    blocks = read_all(served, replay)
    counts = np.bincount(blocks)
    for block in random.sample(np.flatnonzero((counts > 0) & (counts < 3)).tolist(), 4):
        places = [-1, *np.flatnonzero(blocks == block).tolist()]
        for at, place in enumerate(places[1:], 1):
            assert replay.find_block(block, places[at - 1], back=False) == place
            assert replay.find_block(block, replay.length, back=True) == places[-1]
            assert replay.find_block(block, place, back=True) == (places[at - 1] if at > 1 else None)
        assert replay.find_block(block, places[-1], back=False) is None


def test_windows_and_frames_are_parts_of_the_path(served: ServedTrace) -> None:
    replay = replay_of(served)
    blocks = read_all(served, replay)
    tid = replay.path.tid
    for start, count in ((0, 100), (replay.length - 7, 100), (replay.length // 2, 100_000), (5, 0)):
        _, meta, arrays = decode_container(replay_answers.encode_path(served, 0, tid, start, count))
        assert arrays["block"].tolist() == blocks[start : start + count].tolist()
        assert meta["next"] == min(start + count, replay.length)
    _, _, frames = decode_container(replay_answers.encode_frames(served, 0, tid, 10, replay.length // 6, 8))
    assert frames["position"].tolist() == [*(10 + replay.length // 6 * n for n in range(6)), replay.length]
    ends = [0, *frames["block_end"].tolist()]
    for number, position in enumerate(frames["position"].astype(int).tolist()):
        shown = frames["block"][ends[number] : ends[number + 1]]
        assert shown.tolist() == blocks[max(position - 64, 0) : position].tolist()
    with pytest.raises(UsageError):
        replay_answers.encode_path(served, 0, tid, 0, 100_001)
    with pytest.raises(UsageError):
        replay_answers.encode_frames(served, 0, tid, 0, 0, 5)
    with pytest.raises(UsageError):
        replay_answers.answer_replay(served, 0, 1, 0)
    with pytest.raises(UsageError):
        replay_answers.answer_seek(served, 0, tid, {"block": str(replay.graph.n_blocks)}, 0)


@pytest.mark.parametrize("mode", ["full", "region", "counts", "coverage"])
def test_a_timeline_adds_up_to_the_totals(folder: Path, mode: str) -> None:
    trace = ServedTrace(record(folder, mode), 0)
    graph = trace.graph(0)
    for bins in (1, 7, 1000):
        _, meta, arrays = decode_container(replay_answers.encode_timeline(trace, 0, None, None, bins, None))
        ran = (graph.is_recorded & (graph.n_instructions > 0)).sum()
        assert arrays["new_code"].sum() == arrays["thread_new_code"].sum() == ran
        length, covered = int(arrays["length"][0]), 0
        if mode in ("counts", "coverage"):
            assert meta["unit"] is None
            assert "not recorded" in meta["reason"]
            assert (arrays["gap_from"][0], arrays["gap_to"][0]) == (arrays["started"][0], arrays["ended"][0])
        elif mode == "region":
            tags = trace.trace.tags.to_pylist()
            is_busy, covered = False, 0
            for tag in tags:
                is_busy = is_busy or tag["kind"] == "became_busy"
                covered += is_busy
                is_busy = is_busy and tag["kind"] != "left_busy"
            assert length == len(tags)
            counted = sum(tag["executions"] for tag in tags if tag["kind"] == "counts")
            assert arrays["gap_executions"].sum() == counted > 0
        else:
            assert length == trace.trace.threads["block_executions"][0].as_py() > 0
            assert len(arrays["gap_from"]) == 0
        assert arrays["density"].astype(float).sum() == pytest.approx(length - covered, rel=1e-5)


def test_system_calls_are_the_same_whatever_recorded_them(folder: Path) -> None:
    named = {}
    for mode in ("full", "region"):
        trace = ServedTrace(record(folder, mode), 0)
        told = replay_answers.answer_events(trace, 0, 0, 1 << 60, None)
        assert told["omitted"] == 0
        named[mode] = [event["name"] for event in told["events"]]
        times = [event["time"] for event in told["events"]]
        assert times == sorted(times)
        assert all(event["kind"] == TickKind.SYSTEM_CALL.name.lower() for event in told["events"])
    assert named["full"] == named["region"]
    assert {"brk", "mmap", "read", "write", "exit_group"} <= set(named["full"])


def test_busy_stretches_are_one_step(folder: Path) -> None:
    trace = ServedTrace(record(folder, "region"), 0)
    replays = ProcessReplays(trace, 0)
    replay = replays.replay(replays.timeline.threads[0].tid)
    assert isinstance(replay, TagReplay)
    tags = trace.trace.tags.to_pylist()
    index = {block: number for number, block in enumerate(replay.graph.block_id.tolist())}
    position, seen = 0, 0
    while position < min(replay.length, 3000):
        state = replay.state(position)
        if tags[position]["kind"] == "became_busy":
            assert state.gap is not None
            inside = tags[int(state.gap["start"]) : int(state.gap["end"])]
            assert inside[-1]["kind"] == "left_busy"
            counts = {tag["block_id"]: 0 for tag in inside if tag["kind"] == "counts"}
            for tag in inside:
                if tag["kind"] == "counts":
                    counts[tag["block_id"]] += tag["executions"]
            told = dict(replay.read_counts(state.gap, 1 << 20))
            assert told == {index.get(block, -1): n for block, n in counts.items()}
            seen += 1
        else:
            assert state.gap is None
            if tags[position]["kind"] == "executed":
                assert state.block == index[tags[position]["block_id"]]
        following = replay.step(position, 1)
        assert following > position
        assert replay.step(following, -1) == position
        position = following
    assert seen > 0


def test_without_order_there_is_a_reason(folder: Path) -> None:
    trace = ServedTrace(record(folder, "counts"), 0)
    tid = trace.trace.threads["tid"][0].as_py()
    with pytest.raises(UsageError, match="not recorded in mode counts"):
        replay_answers.answer_replay(trace, 0, tid, 0)
