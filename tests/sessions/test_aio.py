"""Sessions with async and await, by asyncio and trio."""

from __future__ import annotations

import inspect
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import anyio
import numpy as np
import pytest

import clew
from clew import aio
from clew.errors import ClewError, UsageError
from clew.protocol.codec import FlowKind

TURNS = 300
FOREVER = str(10**12)


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Callable[[Callable[[], Awaitable[object]]], None]:
    """Runs an async function; no thread waits for anything afterwards."""
    pytest.importorskip(request.param)

    def run(function: Callable[[], Awaitable[object]]) -> None:
        # In a thread of its own: a browser's tests may have left this one a loop that runs.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: anyio.run(function, backend=request.param)).result()
        left = [thread.name for thread in threading.enumerate() if thread.name.startswith("clew-")]
        assert left == []

    return run


Run = Callable[[Callable[[], Awaitable[object]]], None]


def test_events_are_iterated_over(called: Path, run: Run) -> None:
    async def follow() -> None:
        async with clew.aio.spawn([called, str(TURNS)], stdout=DEVNULL) as session:
            events = await session.follow(events={"call"})
            assert session.events() is events
            add = await session.run(session.session.find, "add")
            await session.resume()
            n_calls = 0
            async for batch in events:
                n_calls += int(((batch["kind"] == FlowKind.CALL) & (batch["target"] == add)).sum())
            assert n_calls == 3 * TURNS == 3 * TURNS + events.stream.n_dropped
            assert await session.wait(60) == session.exit_code == session.session.poll()
            assert await events.take() is None

    run(follow)


def test_several_sessions_go_on_at_once(called: Path, run: Run) -> None:
    ended: list[int] = []

    async def one(turns: int) -> None:
        async with aio.spawn([called, str(turns)], stdout=DEVNULL) as session:
            await session.resume()
            ended.append(await session.wait())

    async def follow() -> None:
        async with anyio.create_task_group() as group:
            for turns in (1, 2, 3):
                group.start_soon(one, turns)

    run(follow)
    native = [subprocess.run([called, str(turns)], capture_output=True).returncode for turns in (1, 2, 3)]
    assert sorted(ended) == sorted(native)


def test_what_waits_is_cancelled_and_loses_nothing(called: Path, run: Run) -> None:
    async def follow() -> None:
        async with aio.spawn([called, "3000"], stdout=DEVNULL) as session:
            events = await session.follow(events={"call", "ret"}, queue_batches=1)
            start = time.monotonic()
            for wait in (events.take, session.wait, session.wait_for_stop):
                with anyio.move_on_after(0.2) as scope:
                    await wait()
                # It is stopped already in front of its first instruction.
                assert scope.cancelled_caught or wait == session.wait_for_stop
            for wait in (events.take, session.wait):
                with pytest.raises(TimeoutError):
                    await wait(0.05)
            assert time.monotonic() - start < 5
            await session.resume()
            batches = []
            while True:
                with anyio.move_on_after(0.001) as scope:
                    batch = await events.take()
                    if batch is None:
                        break
                    batches.append(batch)
            whole = np.concatenate(batches)
            assert (whole["sequence"] == np.arange(len(whole))).all()
            assert len(whole) == events.stream.n_received

    run(follow)


def test_a_session_that_is_cancelled_ends(called: Path, run: Run) -> None:
    pids: list[int] = []

    async def follow() -> None:
        with anyio.move_on_after(0.5):
            async with aio.spawn([called, FOREVER], stdout=DEVNULL) as session:
                pids.append(session.pid)
                await session.follow(events={"call"})
                await session.resume()
                async for _ in session.events():
                    pass
        with anyio.CancelScope() as scope:
            scope.cancel()
            async with aio.spawn([called, FOREVER], stdout=DEVNULL) as session:
                pids.append(session.pid)
                await session.wait()
        assert scope.cancelled_caught

    run(follow)
    assert len(pids) == 2 and not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_process_that_is_attached_to_goes_on(called: Path, run: Run) -> None:
    program = subprocess.Popen([called, FOREVER], stdout=DEVNULL)

    async def follow() -> None:
        async with aio.attach_session(program.pid) as session:
            await session.run(session.session.add_breakpoint, "add")
            thread = await session.wait_for_stop(30)
            assert thread.registers is not None
            await session.step(thread.tid)
            await session.run(session.session.remove_breakpoint, "add")
            await session.resume()
            with pytest.raises(TimeoutError):
                await session.wait_for_stop(0.1)
            await session.pause()
            await session.resume()
            await session.follow(events={"call"})
            batch = await session.events().take(30)
            assert batch is not None and len(batch)
            await session.flush()
            await session.unfollow()
            await session.detach()
            with pytest.raises(ClewError, match="goes on without it"):
                await session.wait()

    try:
        run(follow)
        assert program.poll() is None
    finally:
        program.kill()
        program.wait()


def test_what_goes_wrong_is_raised(called: Path, run: Run, tmp_path: Path) -> None:
    def fail(call: Any) -> None:
        raise TimeoutError("mine")

    async def follow() -> None:
        with pytest.raises(ClewError):
            async with aio.spawn([tmp_path / "none"]):
                pass
        with pytest.raises(LookupError):
            async with aio.spawn([called, FOREVER]) as session:
                with pytest.raises(UsageError, match="no events"):
                    session.events()
                await session.kill()
                raise LookupError
        with pytest.raises(TimeoutError, match="mine"):
            async with aio.spawn([called, "3"], stdout=DEVNULL) as session:
                await session.run(session.session.on_call, "add", fail)
                await session.resume()
                await session.wait(60)

    run(follow)


def test_it_is_documented() -> None:
    assert "budget" in inspect.signature(aio.spawn).parameters
    for kind in (aio.AsyncSession, aio.AsyncEvents, aio.spawn, aio.attach_session):
        assert inspect.getdoc(kind)
    for kind in (aio.AsyncSession, aio.AsyncEvents):
        for name, member in inspect.getmembers(kind, inspect.isfunction):
            assert name.startswith("_") or inspect.getdoc(member), name
