"""A process that runs already, which clew attaches to and leaves as it was.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from clew.address import Pid
from clew.errors import AttachError, ClewError, TargetGoneError
from clew.process.attach import (
    STOP_SECONDS,
    Attachment,
    HandOver,
    SharedMemoryMaker,
    attach,
    attach_held,
)
from clew.process.attachable import check_attachable, find_living_task
from clew.process.held_process import HeldProcess
from clew.process.identity import read_cpu_seconds, read_parent
from clew.process.leftover import take_out_leftover
from clew.process.maps import Mapping
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import SharedFile, SharedMemory
from clew.recording.following.filters_live import LiveFilters
from clew.recording.following.followed import read_identity
from clew.recording.following.processes import Processes
from clew.recording.session.interrupts import InterruptGuard
from clew.recording.session.means import Means
from clew.recording.session.notices import Descendants
from clew.recording.sinks.sink import Identity

__all__ = ["Attach", "AttachedTarget", "TakeOver", "name_of"]


class Attach:
    """Process `pid` is to be recorded, for `duration_seconds`; None: until clew is told to leave, or it ends.

    Raises AttachError if it can't be.
    """

    pause_seconds = 0.0
    adopts_orphans = False

    def __init__(self, pid: Pid, duration_seconds: float | None = None) -> None:
        # Before anything is made: most of what can be wrong is told here.
        check_attachable(pid)
        self.command: Sequence[str] = _command_of(pid)
        self._pid = pid
        self._duration_seconds = duration_seconds

    def enter(self, means: Means) -> AttachedTarget:
        # What takes long to import is imported before the process depends on being drained.
        import clew.recording.drain.drain  # noqa: F401

        pid, guard = self._pid, means.guard
        with contextlib.ExitStack() as undo:
            try:
                pidfd = os.pidfd_open(pid)
            except ProcessLookupError as error:
                raise AttachError(pid, f"process {pid}: no such process") from error
            undo.callback(os.close, pidfd)
            cpu_seconds_before = read_cpu_seconds(pid) or 0.0
            guard.commit()
            mapped: list[Mapping] = []
            met: list[Identity] = []

            def make_shared(fd: int, layout: SharedLayout, mappings: list[Mapping]) -> SharedMemory:
                mapped.extend(mappings)
                # While it is held: let go it may end at once.
                met.append(read_identity(pid, read_parent(pid)))
                shared = SharedMemory(SharedFile(layout, fd), means.settings)
                LiveFilters(means.filters).tell_all(shared, mappings)
                return shared

            attachment = self._put_in(means, make_shared)
            undo.pop_all()
        started = time.monotonic()
        means.processes.add_attached(attachment, met[-1], mapped, pidfd, means.start_ns)
        self._hold(means)
        return AttachedTarget(
            pid,
            means.processes,
            guard,
            Descendants(means.processes, pid, guard, means.tell),
            stopped_seconds=attachment.stopped_seconds,
            over_at=None if self._duration_seconds is None else started + self._duration_seconds,
            cpu_seconds_before=cpu_seconds_before,
        )

    def _put_in(self, means: Means, make_shared: SharedMemoryMaker) -> Attachment:
        """Have the runtime in the process. Raises AttachError, InjectionError, TargetGoneError."""
        pid, guard = self._pid, means.guard
        if take_out_leftover(pid, is_given_up=lambda: guard.wants_to_leave):
            means.tell(f"process {pid}: took out the runtime of a clew that was killed")
        return attach(pid, means.image, make_shared, is_given_up=lambda: guard.wants_to_leave)

    def _hold(self, means: Means) -> None:
        """Its threads go on right away."""


class TakeOver(Attach):
    """Process `pid`, whose own code has probes, is to be followed from where its threads are when `hand_over` has taken
    these out: it is given the process, held, and gives it back so. The threads stop in front of the first instruction.
    """

    def __init__(self, pid: Pid, hand_over: Callable[[HeldProcess], HandOver]) -> None:
        self.command = _command_of(pid)
        self._pid, self._duration_seconds, self._hand_over = pid, None, hand_over

    def _put_in(self, means: Means, make_shared: SharedMemoryMaker) -> Attachment:
        def make_held(fd: int, layout: SharedLayout, mappings: list[Mapping]) -> SharedMemory:
            shared = make_shared(fd, layout, mappings)
            shared.set_status_ticket("hold_ticket", 1)
            return shared

        pid, started = self._pid, time.monotonic()
        held = HeldProcess(pid)
        try:
            held.stop_all(STOP_SECONDS)
            if held.has_executed:
                raise AttachError(pid, f"process {pid}: became another program just now")
            attachment = attach_held(held, means.image, make_held, self._hand_over(held), started)
        except (ClewError, OSError) as error:
            held.let_go()
            if held.wait_status is not None or isinstance(error, ProcessLookupError):
                message = f"process {pid}: ended while it was attached to"
                raise TargetGoneError(pid, message, held.wait_status) from error
            if isinstance(error, OSError):
                raise AttachError(pid, f"process {pid}: can't be attached to: {error.strerror or error}") from error
            raise
        except BaseException:
            held.let_go()
            raise
        if held.wait_status is not None:
            # Its parent is told no more.
            raise TargetGoneError(pid, f"process {pid}: ended when it was attached to", held.wait_status)
        return attachment

    def _hold(self, means: Means) -> None:
        followed = means.processes.live[0]
        # As they were told before they began.
        means.processes.holdings.of(followed).is_held = True


class AttachedTarget:
    """It is recorded until the monotonic time is `over_at`, unless that is None, or clew is told to leave."""

    def __init__(
        self,
        pid: Pid,
        processes: Processes,
        guard: InterruptGuard,
        descendants: Descendants,
        *,
        stopped_seconds: float,
        over_at: float | None,
        cpu_seconds_before: float,
    ) -> None:
        self.pid = pid
        self.stopped_seconds = stopped_seconds
        self.farewell = ""
        self._processes = processes
        self._guard = guard
        self._descendants = descendants
        self._over_at = over_at
        self._cpu_seconds_before = cpu_seconds_before

    def is_over(self, now: float) -> bool:
        if (self._over_at is None or now < self._over_at) and not self._guard.wants_to_leave:
            self._descendants.look(now)
            return False
        self._processes.refresh_names()
        return True

    @property
    def cpu_seconds(self) -> float | None:
        """Of a process that has ended only its parent is told."""
        if self.pid in self._processes.exit_status:
            return None
        return max(self._processes.cpu_seconds - self._cpu_seconds_before, 0.0)


def name_of(pid: Pid) -> str:
    """What the kernel calls process `pid`. Raises AttachError if there is none."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").rstrip("\n")
    except OSError as error:
        raise AttachError(pid, f"process {pid}: no such process") from error


def _command_of(pid: Pid) -> list[str]:
    """The command line of process `pid`, as it shows it; its name if it shows none."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{find_living_task(pid)}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        if words != [b""]:
            return [os.fsdecode(word) for word in words]
    return [name_of(pid)]
