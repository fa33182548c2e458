"""A session of probes that is told what to do bit by bit: which events, in which processes, from when to when.

Runs in the controller, all of it in one thread. A session that is stopped has nothing in any process: each is as it
was. One that is started has its events in all its processes, and in what these fork and execute.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from clew.address import Pid
from clew.errors import ClewError, ControlError
from clew.export.probes.event_types import EventBatch
from clew.process.attachable import check_attachable
from clew.sessions.probes.background.processes import SessionProcesses
from clew.sessions.probes.background.session_events import SessionEvent, SessionEvents, describe_places
from clew.sessions.probes.background.wishes import EventWish
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.sharing.joining import has_owner

__all__ = ["BackgroundSession", "OpenWriter", "SessionWriter"]

MAX_REMARKS: Final = 64
_FLUSH_SECONDS: Final = 1.0


class SessionWriter(Protocol):
    """What events are written with."""

    def write(self, batch: EventBatch) -> None:
        """Write events. Raises OSError."""

    def flush(self) -> None:
        """Have all that was written be there for who reads. Raises OSError."""

    def close(self) -> None:
        """The same at the end. Raises OSError."""


OpenWriter = Callable[[str, Path, str], SessionWriter]
"""Opens what writes a format to a path, for the session of a name. Raises OSError."""


class BackgroundSession:
    """The session `name`. `tell` is given what is for its log."""

    def __init__(self, name: str, open_writer: OpenWriter, tell: Callable[[str], None]) -> None:
        self.name, self._open_writer, self._tell = name, open_writer, tell
        self._probes = ProbeSession([])
        self._events = SessionEvents()
        self._processes = SessionProcesses(self._probes, self._note)
        self.is_active = self.is_destroyed = False
        self.output: Path | None = None
        self.form = ""
        self._writer: SessionWriter | None = None
        self._remarks: list[str] = []
        self._flush_at = 0.0

    # What is told to do: each gives what is to be told people.

    def enable(self, wish: EventWish) -> list[str]:
        """Have an event, or have it again. Raises ClewError: it is as before then."""
        if self._events.has(wish.name):
            return self._enable_again(self._events.find(wish.name), wish)
        self._check_name(wish)
        spec = wish.make_spec()
        is_new = spec.pid is not None and spec.pid not in self._processes
        try:
            if spec.pid is not None:
                self._add_process(spec.pid)
            self._begin_change()
            [index] = self._probes.add([spec])
        except ClewError:
            if spec.pid is not None and is_new:
                self._processes.remove(spec.pid)
            raise
        self._events.add(SessionEvent(wish, index))
        return self._news()

    def enable_known(self, name: str) -> list[str]:
        """Have an event again that was disabled. Raises ClewError."""
        event = self._events.find(name)
        return self._enable_again(event, event.wish)

    def disable(self, name: str) -> list[str]:
        """Have events nowhere, until they are enabled; an empty name means all. Raises ClewError."""
        events = [event for event in self._events.choose(name) if event.is_enabled]
        self._begin_change()
        self._probes.remove(event.index for event in events)
        for event in events:
            event.is_enabled = False
        return self._news() if events else [f"{name}: is disabled already"]

    def remove(self, name: str) -> list[str]:
        """Have an event no more. Raises ClewError."""
        event = self._events.find(name)
        self._begin_change()
        self._probes.remove([event.index])
        self._events.remove(name)
        return self._news()

    def add_contexts(self, name: str, contexts: list[str]) -> list[str]:
        """Have events take more; an empty name means all. Raises ClewError."""
        changes = [(event, event.wish.with_contexts(contexts)) for event in self._events.choose(name)]
        for _, wish in changes:
            wish.check()
        self._begin_change()
        for event, wish in changes:
            if wish != event.wish:
                self._exchange(event, wish)
        return self._news()

    def start(self, output: Path, form: str, *, is_asked: bool) -> list[str]:
        """Have the probes in all processes, and events written to `output`; the same as before unless that `is_asked`
        for. Raises ClewError if they are in none."""
        if self.is_active:
            if is_asked and (output, form) != (self.output, self.form):
                raise ControlError(f"session {self.name} writes to {self.output} already: stop it first")
            return [f"session {self.name} is started already"]
        if self._writer is None or (is_asked and (output, form) != (self.output, self.form)):
            self._open(output, form)
        failures = self._processes.attach_all()
        self.is_active = True
        return [*failures, *self._news()]

    def stop(self) -> list[str]:
        """Take the probes out of all processes. Raises ControlError if that is done already."""
        if not self.is_active:
            raise ControlError(f"session {self.name} is stopped already")
        failures = self._processes.leave_all()
        self.is_active = False
        try:
            self._read()
            if self._writer is not None:
                self._writer.flush()
        except OSError as error:
            failures.append(f"{self.output}: not all events could be written: {error.strerror or error}")
        return [*failures, *self._news()]

    def destroy(self) -> list[str]:
        """End the session."""
        told = self.stop() if self.is_active else []
        self.is_destroyed = True
        # Some could not be left when the session was stopped.
        told += self._processes.leave_all()
        self._probes.guests.close()
        with contextlib.suppress(OSError):
            # That is told: it was flushed.
            self._close_writer()
        return told

    def attach(self, pid: Pid) -> list[str]:
        """Have a process in the session. Raises ClewError."""
        is_new = pid not in self._processes
        try:
            self._add_process(pid)
        except ClewError:
            if is_new:
                self._processes.remove(pid)
            raise
        return self._news()

    def detach(self, pid: Pid) -> list[str]:
        """Have a process in the session no more. Raises ClewError."""
        if pid not in self._processes:
            raise ControlError(f"process {pid}: is not in session {self.name}")
        self._processes.remove(pid)
        return self._news()

    def arrive(self, pid: Pid, mask: list[int]) -> bool:
        """Process `pid` is about to execute a program that is to be in the session: whether it is followed into that.
        It has blocked all signals, and is given `mask` then. Raises ControlError."""
        return self._processes.arrive(pid, mask, is_probed=self.is_active)

    # What goes on.

    @property
    def has_processes(self) -> bool:
        """Whether there is something to do beside what is told."""
        return self._processes.is_busy

    def has(self, pid: Pid) -> bool:
        """Whether a process is in the session, forks' children of those among them: it is not heard then."""
        return self._processes.has(pid)

    def wait(self, seconds: float) -> None:
        """Wait until a thread wants something, or for so long."""
        self._probes.wait(seconds)

    def advance(self) -> None:
        """Let threads go on that wait, and write what events came."""
        self._processes.advance()
        self._read()
        for text in self._probes.take_remarks():
            self._note(text)
        if time.monotonic() > self._flush_at:
            self._flush_at = time.monotonic() + _FLUSH_SECONDS
            self._processes.look_after(is_active=self.is_active)
            if self._writer is not None:
                self._writer.flush()

    def fail(self, text: str) -> None:
        """Something went wrong: no probe is anywhere from now on."""
        self._note(text)
        if self.is_active:
            with contextlib.suppress(ClewError):
                self._remarks += self.stop()
            self.is_active = False
        with contextlib.suppress(OSError):
            self._close_writer()

    def describe(self) -> dict[str, Any]:
        """How everything stands."""
        processes = self._processes.describe(is_active=self.is_active)
        targets = self._processes.targets
        armed = [one for target in targets for one in target.armed]
        missing: dict[str, str] = {}
        for target in targets:
            missing.update(target.missing)
        events = []
        for event in self._events:
            name, where = event.wish.name, event.wish.where
            places = describe_places(one for one in armed if one.name == name)
            why = missing.get(where, "") if not places["places"] and event.is_enabled else ""
            events.append(event.describe(self._probes.n_events) | places | {"missing": why})
        return {
            "session": self.name,
            "is_active": self.is_active,
            "output": None if self.output is None else str(self.output),
            "format": self.form or None,
            "processes": processes,
            "events": events,
            "lost": self._probes.n_lost,
            "remarks": self._remarks,
        }

    # How it is done.

    def _enable_again(self, event: SessionEvent, wish: EventWish) -> list[str]:
        name = wish.name
        if wish.place != event.wish.place:
            raise ControlError(f"{name}: there is an event of that name, of {event.wish.where}; remove it first")
        if wish.condition != event.wish.condition or wish.returned != event.wish.returned:
            raise ControlError(f"{name}: there is an event of that name that takes something else; remove it first")
        if not set(wish.contexts) <= set(event.wish.contexts):
            raise ControlError(f"{name}: is there already; `clew add-context` has it take more")
        if event.is_enabled:
            return [f"{name}: is enabled already"]
        self._begin_change()
        self._probes.enable([event.index])
        event.is_enabled = True
        return self._news()

    def _exchange(self, event: SessionEvent, wish: EventWish) -> None:
        """Have an event be of what another wish says."""
        before = event.index
        self._probes.remove([before])
        try:
            event.indices += self._probes.add([wish.make_spec()])
        except ClewError:
            if event.is_enabled:
                self._probes.enable([before])
            raise
        event.wish = wish
        if not event.is_enabled:
            self._probes.remove([event.index])

    def _check_name(self, wish: EventWish) -> None:
        """Raises ControlError where events of two would be called the same."""
        endings = ("_entry", "_exit")
        own = {wish.name + one for one in endings} if wish.is_function else {wish.name}
        for event in self._events:
            other = event.wish
            if own & ({other.name + one for one in endings} if other.is_function else {other.name}):
                raise ControlError(f"{wish.name}: its events would be called as those of {other.name}")

    def _add_process(self, pid: Pid) -> None:
        """Have a process in the session, with its probes if that is started. Raises ClewError."""
        if not self.is_active and pid not in self._processes and not has_owner(pid):
            check_attachable(pid)
        member = self._processes.add(pid)
        if self.is_active:
            self._processes.split_families()
            self._processes.attach(member)

    def _begin_change(self) -> None:
        """Probes are about to change."""
        if self.is_active:
            self._processes.split_families()

    def _open(self, output: Path, form: str) -> None:
        self._close_writer()
        try:
            self._writer = self._open_writer(form, output, self.name)
        except FileExistsError as error:
            raise ControlError(f"{output}: is there already; say another one with -o") from error
        except OSError as error:
            raise ControlError(f"{output}: {error.strerror or error}") from error
        self.output, self.form = output, form

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _read(self) -> None:
        batch = self._probes.read()
        if self._writer is not None and (batch.tables or batch.losses):
            self._writer.write(batch)

    def _news(self) -> list[str]:
        """What there is to tell that was not told."""
        found = self._probes.take_remarks()
        for text in found:
            self._note(text)
        return found

    def _note(self, text: str) -> None:
        self._tell(text)
        self._remarks = [*self._remarks, text][-MAX_REMARKS:]
