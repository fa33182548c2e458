"""Events: what followed threads do, in arrays, while they run."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path
from subprocess import DEVNULL

import numpy as np
import pytest

import clew
from clew.errors import UsageError
from clew.protocol._constants import Mode
from clew.protocol.codec import FlowKind
from clew.sessions.events.events import IDLE_SECONDS
from tests.programs.build import build_one, catalogue
from tests.sessions.event_arrays import ALL, FOREVER, Array, calls_of

TURNS = 300


def resident_kib(pid: int) -> int:
    """What a process has in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4


def instructions_of(trace: clew.Trace, tid: int) -> list[int]:
    """The addresses of the blocks that a thread executed, in its order, as its path in a trace has them."""
    blocks = trace.blocks.select(["block_id", "app_pc"])
    pc = dict(zip(blocks["block_id"].to_pylist(), blocks["app_pc"].to_pylist(), strict=True))
    return [pc[block_id] for block_id in trace.path(tid)]


def assert_like_trace(events: Array, trace: clew.Trace) -> None:
    """Whatever threads executed, by a trace, is told, in their order, and nothing else is."""
    told = events[events["kind"] == FlowKind.EXEC]
    starts = set(trace.blocks["app_pc"].to_pylist())
    for row in trace.paths.to_pylist():
        own = told[told["thread"] == row["tid"]]
        assert len(own) == row["instructions"]
        expected = instructions_of(trace, row["tid"])
        at_starts = [address for address in own["address"].tolist() if address in starts]
        assert at_starts == expected


@pytest.mark.parametrize("mode", ["counts", "full", "auto"])
def test_calls_are_told_however_they_are_made(called: Path, mode: str) -> None:
    with clew.spawn([called, str(TURNS)], mode=mode, stdout=DEVNULL) as session:
        stream = session.follow(events={"call", "ret"})
        add = session.find("add")
        session.resume()
        events = np.concatenate(list(session.events()))
        session.wait(60)
        assert calls_of(events, add) == 3 * TURNS
        assert set(events["kind"].tolist()) == {FlowKind.CALL, FlowKind.RET}
        assert set(events["thread"].tolist()) == {session.pid}
        assert (events["sequence"] == np.arange(len(events))).all()
        assert (stream.n_received, stream.n_dropped, stream.n_gaps) == (len(events), 0, stream.n_gaps)
        assert not session.trace.verify()


@pytest.mark.parametrize("n_threads", [1, 8])
def test_all_that_threads_execute_is_told(called: Path, n_threads: int) -> None:
    with clew.spawn([called, "40", str(n_threads)], mode="full", stdout=DEVNULL) as session:
        session.follow(events=ALL)
        session.resume()
        events = np.concatenate(list(session.events()))
        session.wait(60)
        assert_like_trace(events, session.trace)
    for tid in np.unique(events["thread"]).tolist():
        own = events[events["thread"] == tid]
        assert (own["sequence"] == np.arange(len(own))).all()
        blocks = own[own["kind"] == FlowKind.BLOCK]
        assert blocks["n_instructions"].sum() == (own["kind"] == FlowKind.EXEC).sum()


def test_depth_is_that_of_open_calls(called: Path) -> None:
    with clew.spawn([called, "5"], stdout=DEVNULL) as session:
        session.follow(events={"call"})
        descend = session.find("descend")
        session.resume()
        events = np.concatenate(list(session.events()))
    depths = events["depth"][events["target"] == descend].reshape(5, 4)
    assert (depths == depths[0, 0] + np.arange(4)).all()


def test_some_threads_are_followed(called: Path) -> None:
    asked: list[clew.FollowedThread] = []

    def is_second(thread: clew.FollowedThread) -> bool:
        asked.append(thread)
        return thread.tid != thread.pid

    with clew.spawn([called, "40", "4"], stdout=DEVNULL) as session:
        session.follow(is_second, events={"call"})
        session.resume()
        events = np.concatenate(list(session.events()))
        session.wait(60)
        assert len(np.unique(events["thread"])) == 3 and session.pid not in events["thread"]
        assert {(thread.pid, thread.name) for thread in asked} == {(session.pid, called.name[:15])}
    with clew.spawn([called, "40", "4"], stdout=DEVNULL) as session:
        session.follow(session.pid, events={"call"})
        session.resume()
        assert set(np.concatenate(list(session.events()))["thread"].tolist()) == {session.pid}


def test_what_is_excluded_is_not_told(called: Path) -> None:
    with clew.spawn([called, "40"], exclude="libc.so.6", stdout=DEVNULL) as session:
        session.follow(events={"block"})
        session.resume()
        events = np.concatenate(list(session.events()))
        session.wait(60)
        assert len(events)
        blocks = session.trace.blocks
        told = set(events["address"].tolist())
        images = {row["image_id"]: row["path"] for row in session.trace.images.to_pylist()}
        of_libc = {
            row["app_pc"]
            for row in blocks.select(["app_pc", "image_id"]).to_pylist()
            if "libc.so.6" in str(images.get(row["image_id"]))
        }
        assert not told & of_libc


def test_what_was_before_is_not_told(called: Path) -> None:
    with clew.spawn([called, FOREVER], mode="full", stdout=DEVNULL) as session:
        main, add = session.find("main"), session.find("add")
        session.resume()
        time.sleep(0.3)
        stream = session.follow(events=ALL)
        events = stream.take(60)
        assert events is not None
        assert calls_of(events, main) == 0 and calls_of(events, add) > 0
        assert events["sequence"][0] == 0
        assert stream.n_damaged == 0


@pytest.mark.long
def test_a_thread_is_followed_again_and_again(called: Path) -> None:
    program = subprocess.Popen([called, FOREVER, "2"], stdout=DEVNULL)
    times: list[float] = []
    try:
        with clew.attach_session(program.pid) as session:
            add = session.find("add")
            for turn in range(200):
                start = time.monotonic()
                stream = session.follow(program.pid, events={"call"})
                times.append(time.monotonic() - start)
                assert calls_of(next(iter(stream)), add) > 0
                start = time.monotonic()
                session.unfollow()
                times.append(time.monotonic() - start)
                if turn == 20:
                    before_kib = resident_kib(program.pid)
            assert (stream.n_damaged, program.poll()) == (0, None)
            assert resident_kib(program.pid) < before_kib + 1024
    finally:
        program.kill()
        program.wait()
    assert sorted(times)[len(times) // 2] < 0.5


def test_batches_are_received(called: Path) -> None:
    received: list[Array] = []
    with clew.spawn([called, str(TURNS)], stdout=DEVNULL) as session:
        session.follow(events={"call"})
        session.on_receive(received.append)
        add = session.find("add")
        session.resume()
        session.wait(60)
    assert calls_of(np.concatenate(received), add) == 3 * TURNS


@pytest.mark.long
def test_a_running_process_is_followed_for_a_while(called: Path) -> None:
    program = subprocess.Popen([called, FOREVER, "2"], stdout=DEVNULL)
    try:
        with clew.attach_session(program.pid) as session:
            stream = session.follow(events={"call"})
            add = session.find("add")
            while stream.n_received < 20_000:
                assert stream.take(10) is not None
            session.unfollow()
            # What threads did before is told yet.
            with pytest.raises(TimeoutError):
                while (batch := stream.take(1)) is not None:
                    assert (batch["kind"] == FlowKind.CALL).all()
            before = stream.n_received
            session.flush()
            assert stream.n_received == before
            while session._target.run(lambda control: iter([control.processes.mode])) != Mode.COUNTS:
                time.sleep(IDLE_SECONDS / 10)
            session.follow(events={"call"})
            assert calls_of(next(iter(stream)), add) > 0
            assert (stream.n_gaps, stream.n_damaged) == (0, 0)
        assert program.poll() is None
    finally:
        program.kill()
        program.wait()


def test_events_of_a_paused_program_are_there_when_flushed(called: Path) -> None:
    with clew.spawn([called, "30", "1"], mode="full", stdout=DEVNULL) as session:
        stream = session.follow(events={"exec"})
        session.flush()
        assert len(stream.take_waiting()) == 0
        for n in range(1, 30):
            session.step()
            session.flush()
            assert stream.n_received <= n
        session.resume()
        session.wait(60)
        events = np.concatenate(list(stream))
        assert_like_trace(events, session.trace)


def test_times_are_times_of_day(called: Path) -> None:
    before = time.time_ns()
    with clew.spawn([called, str(TURNS)], stdout=DEVNULL) as session:
        session.follow(events={"call"}, time=True)
        session.resume()
        events = np.concatenate(list(session.events()))
    times = events["time"][events["time"] > 0].astype(np.int64)
    assert len(times) > len(events) // 2
    assert before - 1_000_000 <= times.min() and times.max() <= time.time_ns() + 1_000_000
    assert (np.diff(times) >= 0).all()


def test_children_are_told_of() -> None:
    with clew.spawn(
        ["/bin/sh", "-c", "/bin/true; (exit 3); echo $(/bin/echo word)"], mode="full", stdout=DEVNULL
    ) as session:
        session.follow(events=ALL)
        session.resume()
        events = np.concatenate(list(session.events()))
        session.wait(60)
        stream = session.events()
        assert (stream.n_gaps, stream.n_damaged) == (0, 0)
        trace = session.trace
        assert trace.paths.num_rows >= 4
        executed = dict(
            zip(*np.unique(events["thread"][events["kind"] == FlowKind.EXEC], return_counts=True), strict=True)
        )
        expected: dict[int, int] = {}
        for row in trace.paths.to_pylist():
            expected[row["tid"]] = expected.get(row["tid"], 0) + row["instructions"]
        assert executed == expected


def test_code_is_told_of_before_it_is_executed(called: Path) -> None:
    with clew.spawn([called, "40", "4"], stdout=DEVNULL) as session:
        session.follow(events={"compile", "block"}, time=True)
        session.resume()
        batches = list(session.events())
        session.wait(60)
        assert session.events().n_damaged == 0
    compiled: set[int] = set()
    for batch in batches:
        pieces = batch[batch["kind"] == FlowKind.COMPILE]
        compiled |= {address for one in pieces for address in range(one["address"], one["address"] + one["size"])}
        # What another thread translated is told where that is.
        assert len(batch) == len(pieces) or compiled
    blocks = np.concatenate(batches)
    for tid in np.unique(blocks["thread"]).tolist():
        own = blocks[blocks["thread"] == tid]
        assert (own["sequence"] == np.arange(len(own))).all()
    assert set(blocks["address"][blocks["kind"] == FlowKind.BLOCK].tolist()) <= compiled
    assert (blocks["time"][blocks["kind"] == FlowKind.COMPILE] > 0).all()


def test_events_are_parsed_one_by_one() -> None:
    kinds = [kind for kind in FlowKind if kind != FlowKind.MEMORY]
    rows = np.zeros(len(kinds), clew.EventStream.dtype)
    rows["kind"] = kinds
    rows["address"], rows["target"], rows["size"], rows["depth"] = 0x10, 0x20, 5, 3
    assert clew.parse(rows) == [
        ("call", 0x10, 0x20, 3),
        ("ret", 0x10, 0x20, 3),
        ("block", 0x10, 0x15),
        ("exec", 0x10),
        ("compile", 0x10, 0x15),
        ("syscall", 0x10, 0x20),
        ("signal", 0x10, 0x20),
        ("exception", 0x10, 0x20),
        ("thread", 0x10, 0x20),
        ("image", 0x10, 0x15),
    ]
    assert clew.parse(rows.tobytes(), annotate=False, stringify=True)[2] == ("0x10", "0x15")
    with pytest.raises(UsageError, match="48 bytes"):
        clew.parse(rows.tobytes()[:-1])
    with pytest.raises(UsageError, match="not of events"):
        clew.parse(np.zeros(3))
    rows["kind"] = 200
    with pytest.raises(UsageError, match="kind 200"):
        clew.parse(rows)


def test_what_is_wrong_is_told(called: Path) -> None:
    with clew.spawn([called]) as session:
        with pytest.raises(UsageError, match="follow"):
            session.events()
        with pytest.raises(UsageError, match="call, ret, block, exec, compile"):
            session.follow(events={"memories"})
        with pytest.raises(UsageError, match="on_full"):
            session.follow(on_full="lose")
        with pytest.raises(UsageError, match="room"):
            session.follow(queue_batches=0)


@pytest.mark.parametrize(
    "name", ["exceptions", pytest.param("signal_threads", marks=pytest.mark.stress), "coroutines", "code_made"]
)
@pytest.mark.usefixtures("programs")
def test_programs_of_all_kinds(name: str) -> None:
    program = next(one for one in catalogue() if one.name == name)
    build_one(program)
    with clew.spawn([program.path], mode="full", stdout=DEVNULL, stderr=DEVNULL) as session:
        stream = session.follow(events={"block"})
        session.resume()
        executed: Counter[int] = Counter()
        for batch in stream:
            blocks = batch[batch["kind"] == FlowKind.BLOCK]
            executed[int(batch["thread"][0])] += int(blocks["n_instructions"].sum())
        session.wait(120)
        assert (stream.n_dropped, stream.n_gaps, stream.n_damaged) == (0, 0, 0)
        expected = {row["tid"]: row["instructions"] for row in session.trace.paths.to_pylist()}
        assert executed == expected
