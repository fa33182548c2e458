"""Sessions for programs that are written with async and await, by asyncio or trio.

Runs in the controller, in whatever thread has the event loop. What waits for the target is done in other threads, or
looked at again and again, so that the loop goes on, and what is cancelled leaves no thread that waits.

    async with clew.aio.spawn(["./server"]) as session:
        events = await session.follow(events={"call"})
        await session.resume()
        async for batch in events:
            ...
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial, wraps
from typing import Any, Final, ParamSpec, TypeVar

import anyio
import anyio.to_thread
import numpy.typing as npt

import clew
from clew.sessions.choice import Threads
from clew.sessions.events.event_stream import EventStream
from clew.sessions.events.gates import Places
from clew.sessions.session import Session
from clew.sessions.threads import SessionThread

__all__ = ["AsyncEvents", "AsyncSession", "attach_session", "spawn"]

Array = npt.NDArray[Any]
P = ParamSpec("P")
T = TypeVar("T")

LOOK_SECONDS: Final = 0.02
"""Between two looks at what is waited for."""
TAKE_SECONDS: Final = 0.1
"""For so long a thread waits for events; so long a task that is cancelled may have to wait for it."""


class AsyncEvents:
    """Events of a session: iterating gives batches, as an `EventStream` does. Of what is cancelled nothing is lost."""

    def __init__(self, stream: EventStream) -> None:
        self.stream = stream
        """The stream itself, which knows how many events were dropped."""
        self._taken: list[Array | None] = []

    async def take(self, timeout: float | None = None) -> Array | None:
        """The next batch, or None if nothing more comes. Raises TimeoutError, and what went wrong."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._taken:
            left = TAKE_SECONDS if deadline is None else min(deadline - time.monotonic(), TAKE_SECONDS)
            if left <= 0:
                raise TimeoutError(f"no events within {timeout} seconds")
            await anyio.to_thread.run_sync(self._take, left)
        return self._taken.pop(0)

    def _take(self, seconds: float) -> None:
        try:
            self._taken.append(self.stream.take(seconds))
        except TimeoutError:
            return

    def __aiter__(self) -> AsyncIterator[Array]:
        return self

    async def __anext__(self) -> Array:
        batch = await self.take()
        if batch is None:
            raise StopAsyncIteration
        return batch


class AsyncSession:
    """A `Session` whose methods are awaited. What has none here is done by `run`."""

    def __init__(self, session: Session) -> None:
        """Meant for `spawn` and `attach_session`."""
        self.session = session
        """The session itself. Its methods wait for the target, so they are for `run`."""
        self._events: AsyncEvents | None = None

    @property
    def pid(self) -> int:
        """The process."""
        return self.session.pid

    @property
    def exit_code(self) -> int | None:
        """As `Session.exit_code`."""
        return self.session.exit_code

    async def run(self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> T:
        """Call a function, such as a method of `session`, in another thread. It is waited for though it is cancelled.

        For example `await session.run(session.session.on_call, "main", callback)`.
        """
        return await anyio.to_thread.run_sync(partial(function, *arguments, **named))

    async def resume(self) -> None:
        """As `Session.resume`; so the others."""
        await self.run(self.session.resume)

    async def pause(self) -> None:
        """Stop all threads."""
        await self.run(self.session.pause)

    async def step(self, tid: int = 0, *, over: bool = False) -> SessionThread:
        """Have a stopped thread execute one instruction."""
        return await self.run(self.session.step, tid, over=over)

    async def wait(self, timeout: float | None = None) -> int:
        """Wait until the process has ended; its `exit_code`. Raises what `Session.wait` raises."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (exit_code := self.session.poll()) is None:
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"process {self.pid} has not ended within {timeout} seconds")
            await anyio.sleep(LOOK_SECONDS)
        return exit_code

    async def wait_for_stop(self, timeout: float | None = None) -> SessionThread:
        """Wait until all threads are stopped; the thread for which they are. Raises as `Session.wait_for_stop`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return await self.run(self.session.wait_for_stop, 0)
            except TimeoutError:
                if deadline is not None and time.monotonic() >= deadline:
                    raise TimeoutError(f"process {self.pid} has not stopped within {timeout} seconds") from None
            await anyio.sleep(LOOK_SECONDS)

    async def follow(
        self,
        threads: Threads = None,
        *,
        events: Iterable[str] = ("call", "ret"),
        activate: Places | None = None,
        deactivate: Places | None = None,
        queue_batches: int = 64,
        on_full: str = "wait",
        time: bool = False,
        others: str = "native",
    ) -> AsyncEvents:
        """Have events told from now on, as `Session.follow`."""
        stream = await self.run(
            self.session.follow,
            threads,
            events=events,
            activate=activate,
            deactivate=deactivate,
            queue_batches=queue_batches,
            on_full=on_full,
            time=time,
            others=others,
        )
        if self._events is None:
            self._events = AsyncEvents(stream)
        return self._events

    def events(self) -> AsyncEvents:
        """What `follow` asked for. Raises UsageError if nothing was."""
        if self._events is None:
            self._events = AsyncEvents(self.session.events())
        return self._events

    async def unfollow(self, threads: Threads = None) -> None:
        """Have no events told any more, or none of some threads, as `Session.unfollow`."""
        await self.run(self.session.unfollow, threads)

    async def flush(self) -> None:
        """Have all events told that threads have made by now."""
        await self.run(self.session.flush)

    async def detach(self) -> None:
        """Leave everything that is followed; it goes on natively."""
        await self.run(self.session.detach)

    async def kill(self) -> None:
        """End the process by SIGKILL."""
        await self.run(self.session.kill)

    def __repr__(self) -> str:
        return f"<async session of process {self.pid}>"


def _opening(make: Callable[P, Session]) -> Callable[P, AbstractAsyncContextManager[AsyncSession]]:
    """What makes a session, for `async with`. The session ends with the block, also where that is cancelled."""

    @asynccontextmanager
    async def opened(*arguments: P.args, **named: P.kwargs) -> AsyncIterator[AsyncSession]:
        with anyio.CancelScope(shield=True):
            session = await anyio.to_thread.run_sync(partial(make, *arguments, **named))
        try:
            # Whoever was cancelled meanwhile is told in the block, at the first thing that waits.
            yield AsyncSession(session)
        except BaseException:
            await _end(session.close)
            raise
        # Raises what a callback raised.
        await _end(partial(session.__exit__, None, None, None))

    return wraps(make)(opened)


async def _end(end: Callable[[], None]) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(end)


spawn = _opening(clew.spawn)
attach_session = _opening(clew.attach_session)
