"""What `--on EVENT record` does: the engine follows a probed process on from where a thread has come to, with the same
probes.

Runs in the controller, in the thread that owns the session of probes; while the probes are taken out and the engine is
put in, in the engine's own thread (a tracer is a thread to the kernel), for which the first one waits.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from clew.address import Tid
from clew.errors import AttachError, ClewError, ControlError, TargetGoneError
from clew.process.attach import HandOver
from clew.process.attachable import check_attachable
from clew.process.held_process import HeldProcess
from clew.process.processors.chosen import native_processor, processor_of
from clew.protocol._constants import SlotState
from clew.recording.options.record_options import parse_options
from clew.recording.session.attached import TakeOver
from clew.sessions.handed_calls import HandedCalls
from clew.sessions.probes.event_reader import EventReader, ReadEvents
from clew.sessions.probes.probed_target import ProbedTarget
from clew.sessions.probes.specs import ProbeSpec, RecordWish
from clew.sessions.session import Session

if TYPE_CHECKING:
    from clew.recording.control.commands import Control
    from clew.sessions.memory import Images
    from clew.sessions.probes.probe import ProbePlace
    from clew.sessions.probes.waiting import Waiting

__all__ = ["FollowingOn", "prepare"]

_NS: Final = 1e9


def prepare() -> None:
    """Import what it takes, before threads are held for it."""
    import clew.process.private_pages
    import clew.recording.control.server
    import clew.recording.drain.drain
    import clew.recording.drain.ended_drain
    import clew.recording.following.changed_code
    import clew.recording.following.holding
    import clew.recording.session.commands
    import clew.recording.session.pace
    import clew.recording.sinks.fan_out
    import clew.sessions.probes.followed_probes  # noqa: F401

    for _ in native_processor().architecture.iter_instructions(b"", 0):
        pass


class FollowingOn:
    """The engine's part of a session: follows the process of `waiting`, a thread that waits at a place, on from there.

    `specs` are the probes that it has from then on, by their indices in the session; `reader` makes the events,
    `images` are the session's, which has the process itself.
    """

    def __init__(
        self,
        wish: RecordWish,
        waiting: Waiting,
        specs: Sequence[tuple[int, ProbeSpec]],
        reader: EventReader,
        images: Images,
    ) -> None:
        self.has_taken_out = False
        """The probes are in the program's own code no more."""
        self.wish = wish
        self.left: list[str] = []
        """What stays of those, for people."""
        self.recorded: Path | None = None
        """The trace, once it is written."""
        self.remarks: list[str] = []
        """What there is to tell people."""
        self._indices: dict[int, int] = {}
        """By the engine's number of a probe: the session's."""
        assert isinstance(waiting.target, ProbedTarget)
        self._target, self._waiting, self._calls = waiting.target, waiting, HandedCalls()
        self._specs, self._reader, self._images = specs, reader, images
        self._kinds = {index + 1: index for index, spec in specs if spec.is_function}
        self._started = time.monotonic()
        self.pid = waiting.target.pid
        self.wait_status: int | None = None
        """How it ended while it was held, which its parent is not told any more."""
        self.held_seconds = 0.0
        """For how long its threads were held."""
        self.n_steps = 0
        """How many instructions they executed meanwhile, to get out of handlers."""
        self._session: Session | None = None

    def begin(self) -> None:
        """Follow it. Raises ClewError: `has_taken_out` says whether the probes of before are there still."""
        self._check()
        options = parse_options(self.wish.output, mode=self.wish.mode)
        try:
            session = Session(
                lambda: TakeOver(self.pid, self._hand_over), options, is_spawned=False, images=self._images
            )
        except TargetGoneError as error:
            self.wait_status = error.wait_status
            raise
        self._probes, self._session = session.placed_with(self._reader), session
        self._probes.know(self.pid, *self._target.give_places())
        try:
            # They are on the way to where they stop.
            session.pause()
            for index, spec in self._specs:
                self._add(index, spec)
            session.run_steps(self._hand_calls)
        except ControlError:
            if session.exit_code is None and session.is_following:
                raise
        finally:
            with contextlib.suppress(ControlError):
                session.resume()
            self.held_seconds = time.monotonic() - self._started

    def _check(self) -> None:
        """Raises AttachError where the process can't be followed."""
        waiting, pid = self._waiting, self.pid
        if waiting.target.has_own_numbers:
            raise AttachError(pid, f"process {pid}: is in a pid namespace of its own")
        if waiting.pid != pid:
            raise AttachError(pid, f"process {waiting.pid}: is a fork's child, which runs with its parent's probes")
        check_attachable(pid, is_probed=True)

    def _add(self, index: int, spec: ProbeSpec) -> None:
        try:
            [number] = self._probes.add([spec])
        except ControlError:
            raise
        except ClewError as error:
            self.remarks.append(f"{spec.name}: has no events from then on: {error.message}")
            return
        self._indices[number] = index

    def enable(self, index: int, spec: ProbeSpec) -> None:
        """Have one more probe, or one again, in the process. What can't be is told. Raises ControlError."""
        known = [own for own, of_session in self._indices.items() if of_session == index]
        for own in known:
            self._probes.enable(own)
        if not known:
            self._add(index, spec)

    def remove(self, index: int) -> None:
        """Have a probe there no more. Raises ControlError."""
        for own, of_session in self._indices.items():
            if of_session == index:
                self._probes.remove(own)

    def places(self, index: int) -> list[ProbePlace]:
        """Where a probe is."""
        known = [own for own, of_session in self._indices.items() if of_session == index]
        return [place for own in known for place in self._probes.places(own)]

    def take_remarks(self) -> list[str]:
        """What there is to tell people that was not told yet."""
        remarks, self.remarks = self.remarks, []
        return remarks

    def _hand_over(self, held: HeldProcess) -> HandOver:
        """Take the probes out of a process that is held, in the engine's thread. Raises ClewError, OSError."""
        target = self._target
        for tid in held.threads:
            if not processor_of(tid).get_registers(tid).is_in_own_code:
                raise AttachError(self.pid, f"process {self.pid}: thread {tid} is in 32-bit code")
        handing = target.hand_over(held)
        self._started = time.monotonic()
        # Others may wait for something, too.
        handing.bring_out(self._waiting.tid, target.reply_all)
        kept = {kind: form for kind, form in target.kept_forms().items() if kind in self._kinds}
        self._calls.read(target.process.shared, self._slots_of(target, held), kept)
        self.has_taken_out = True
        taken_out = handing.take_out()
        self.left += taken_out.left
        self.n_steps = taken_out.n_steps
        return HandOver(taken_out.captured, self._calls.threads)

    def _slots_of(self, target: ProbedTarget, held: HeldProcess) -> dict[int, Tid]:
        """The threads that have slots."""
        rows = target.rings.slots.rows
        slots = np.flatnonzero((rows["state"] == SlotState.RUNNING) & (rows["process"] == int(self.pid)))
        tids = [Tid(tid) for tid in rows["tid"][slots].tolist()]
        return {slot: tid for slot, tid in zip(slots.tolist(), tids, strict=True) if tid in held.threads}

    def _hand_calls(self, control: Control) -> Iterator[bool]:
        """Have the calls that are open be the engine's. All threads are stopped."""
        holding = control.processes.holdings.of(control.find({"pid": self.pid}))
        returns = self._probes.numbers_of_returns().items()
        numbers = {number: self._indices[own] for number, own in returns if own in self._indices}
        self._calls.write(holding, self._kinds, numbers)
        if self._calls.n_lost:
            self.remarks.append(f"{self._calls.n_lost} calls that were open then have no event of their return")
        yield True

    # -------------------------------------------------------------------------------------------------- going on

    @property
    def is_following(self) -> bool:
        """Whether it ever followed the process."""
        return self._session is not None

    @property
    def exit_code(self) -> int | None:
        """How the process ended, as `subprocess` has it; None: it has not, or that is not known."""
        if self.wait_status is not None:
            return os.waitstatus_to_exitcode(self.wait_status)
        return None if self._session is None else self._session.exit_code

    def has_ended(self) -> bool:
        """Whether the process has ended, or is left."""
        session = self._session
        return session is None or session.exit_code is not None or not session.is_following

    def read_events(self) -> list[ReadEvents]:
        """The events that have come since. Raises ClewError."""
        return [one._replace(probe=self._indices[one.probe]) for one in self._probes.take_events()]

    def close(self) -> list[str]:
        """Leave what is followed, and have the trace written; what there is to tell people of it. Raises ClewError."""
        session, self._session = self._session, None
        if session is None:
            return []
        try:
            session.detach()
            result = session.result()
        finally:
            session.close()
        if result.failure is not None:
            return [f"what was followed is not recorded: {result.failure}"]
        self.recorded = result.output
        return result.warnings
