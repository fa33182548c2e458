"""Functions at which a session's threads stop to tell somebody: found in what is loaded, and in what is loaded later.

Runs in the controller, in the thread that owns the target, and in the one that waits for who comes. Who comes to a
function, or back from it, waits there alone; the others run on.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from clew.address import Pid
from clew.capture.form import CaptureRoom, Form
from clew.capture.interpreter import Value, interpret
from clew.errors import CaptureError, ControlError
from clew.process.capture_table import CaptureRow, CaptureTable
from clew.process.maps import Mapping, read_maps
from clew.protocol._constants import CALL_PLACES, MAX_CALL_KINDS, MAX_CAPTURES_AT_PLACE
from clew.sessions.memory import Images, read_memory
from clew.sessions.open_calls import WORD_BYTES, OpenCalls
from clew.sessions.place_probe import PlaceProbe, Wish, stop_always
from clew.sessions.stops import Stop
from clew.sessions.thread_place import ThreadPlace
from clew.sessions.where import NOWHERE, Where

if TYPE_CHECKING:
    from clew.recording.following.followed import FollowedProcess
    from clew.recording.following.holding import Holding
    from clew.recording.following.processes import Processes
    from clew.recording.following.stopped_thread import StoppedThread
    from clew.sessions.aggregate_table import AggregateTable
    from clew.sessions.wanted import Wanted

__all__ = ["Places"]


class _Settled(NamedTuple):
    """What is taken of system calls in every process, and has been found to have room."""

    captures: CaptureTable
    tables: list[AggregateTable]


class Places:
    """Those of one session. `tell` is given every thread that stops, where it is found, and has it go on.

    `hear` has threads waited for elsewhere, if that can be (Holding.be_heard).
    """

    def __init__(
        self, processes: Processes, images: Images, tell: Callable[[Stop], None], hear: Callable[[Holding], bool]
    ) -> None:
        self._processes, self._images, self._tell, self._hear = processes, images, tell, hear
        self._lock = threading.RLock()
        self._probes: dict[int, PlaceProbe] = {}
        self._numbers = count(1)
        self._kinds: dict[tuple[int, bytes, bytes], int] = {}
        self._open = OpenCalls()
        self._there: dict[tuple[Pid, int], set[int]] = {}
        """Which probes are at an address of a process, or were; at system calls those of all processes."""
        self._known: dict[tuple[Pid, int], tuple[list[int], dict[int, Form]]] = {}
        """By process and address, until a probe changes: who wants to know of returns from there, and what those take
        who want to know of calls."""
        self._settled: _Settled | None = None
        """What every process that begins has of system calls, until a probe changes."""
        self._n_unmet = 0
        self.n_overdue = 0
        """Threads that went on by themselves, since nobody let them go in time."""
        self._hears_code = False
        self._looks: list[Callable[[FollowedProcess, list[Mapping]], None]] = []
        processes.tell_starts_to(self._arm_calls)
        processes.holdings.tell_birth = self._inherit

    def add(
        self,
        where: Where,
        wanted: Wanted,
        mappings: list[Mapping],
        pid: Pid,
        wish: Wish,
        table: AggregateTable | None = None,
        *,
        tells_left: bool = False,
    ) -> int:
        """Do something about a function, in what process `pid` has mapped and in what comes; the probe's number.

        `tells_left`: calls that are over without having returned are recorded, too.

        Where the condition of `wanted` does not hold nothing is done. All threads are to be stopped. Raises
        ControlError where there is no room, CaptureError.
        """
        number = next(self._numbers)
        probe = PlaceProbe(number, where, wanted, wish, table, tells_left)
        with self._lock:
            if not where.is_system_call:
                self.hear_code()
            self._forget()
            self._probes[number] = probe
            try:
                for followed in self._processes.live:
                    if followed.pid == pid:
                        self._arm(followed, probe, mappings)
            except (ControlError, CaptureError):
                self.remove(number)
                raise
        return number

    @contextlib.contextmanager
    def together(self, pid: Pid) -> Iterator[None]:
        """What is added to a process from here on it is told of at once, at the end."""
        with contextlib.ExitStack() as stack:
            for followed in self._processes.live:
                if followed.pid == pid:
                    stack.enter_context(self._processes.holdings.of(followed).capturing_together())
            yield

    def add_here(
        self, followed: FollowedProcess, address: int, wanted: Wanted, wish: Wish, text: str, mark: int = 0
    ) -> int:
        """Do something at one address of a process, and of its children; the probe's number.

        The thread that is told of now may come there next; others see to it as they come. Raises ControlError where
        there is no room, CaptureError.
        """
        number = next(self._numbers)
        with self._lock:
            self._forget()
            self._probes[number] = PlaceProbe(number, NOWHERE._replace(text=text), wanted, wish)
            try:
                self.extend(number, followed, address, mark)
            except (ControlError, CaptureError):
                del self._probes[number]
                raise
        return number

    def extend(self, number: int, followed: FollowedProcess, address: int, mark: int = 0) -> None:
        """Have a probe at one more address, where threads come from a `mark`, if there is one. Raises ControlError
        where there is no room, CaptureError."""
        with self._lock:
            probe = self._probes.get(number)
            if probe is not None:
                self._forget()
                self._arm_at(followed, probe, address, mark)

    def logs_at(self, pid: Pid, address: int) -> set[int]:
        """The numbers of the probes that record something at an address of a process."""
        with self._lock:
            there = self._there.get(_place(pid, address), ())
            return {one for one in there if one in self._probes and self._probes[one].wish == Wish.LOG}

    def count(self, number: int) -> int:
        """At how many places a probe is."""
        probe = self._probes.get(number)
        return 0 if probe is None else probe.n_places

    def remove(self, number: int) -> None:
        """Tell a probe of nothing any more; calls that are open are not told of when they return."""
        with self._lock:
            self._forget()
            if self._probes.pop(number, None) is not None:
                for followed in self._processes.live:
                    self._processes.holdings.of(followed).keep_captures(self._rows_of(followed))

    def _rows_of(self, followed: FollowedProcess) -> list[CaptureRow]:
        pid = followed.pid
        rows = [
            row
            for one in self._probes.values()
            for (address, _), form in one.forms_of(pid).items()
            for row in one.rows(address, form, self._kind_of)
        ]
        return rows + [stop_always(place) for place in sorted(self._open.return_places(pid))]

    def look_at_code(self, look: Callable[[FollowedProcess, list[Mapping]], None]) -> None:
        """Have `look` called with what is mapped in each process, now and whenever code is loaded, before that is
        executed: it may add what it finds. All threads are to be stopped."""
        with self._lock:
            self._looks.append(look)
            self.hear_code()
            for followed in self._processes.live:
                look(followed, read_maps(followed.memory_pid))

    def hear_code(self) -> None:
        """Be told of code that is loaded later, since something may be there: threads wait for that then."""
        if not self._hears_code:
            self._hears_code = True
            self._processes.tell_code_to(self._arm_all)

    def _forget(self) -> None:
        """A probe comes, goes, or gets another place."""
        self._known.clear()
        self._settled = None

    def _arm_calls(self, followed: FollowedProcess, mappings: list[Mapping]) -> None:
        """Have what is about system calls in a process that begins."""
        holding = self._processes.holdings.of(followed)
        # All at once: a table that grows row by row is looked at by the process' threads as often.
        with self._lock, holding.capturing_together():
            if self._settled is not None:
                for table in self._settled.tables:
                    table.have_in(followed.shared.aggregates)
                try:
                    holding.add_captures(self._settled.captures)
                except ControlError as error:
                    followed.warnings.append(f"system calls are not captured: {error.message}")
                return
            probes = [probe for probe in self._probes.values() if probe.where.is_system_call]
            for probe in probes:
                self._arm_or_warn(followed, probe, mappings)
            self._settled = self._settle(followed.pid, probes)

    def _settle(self, pid: Pid, probes: list[PlaceProbe]) -> _Settled | None:
        """What each process is to have, since `pid` has it; None: that has to be found for each."""
        captures = CaptureTable()
        for probe in probes:
            address = probe.where.address or 0
            forms = probe.forms_at(pid, address)
            if not forms or not probe.is_everywhere or probe.wish.stops:
                return None
            for row in probe.rows(address, forms[0], self._kind_of):
                captures.append(row)
        return _Settled(captures, [probe.table for probe in probes if probe.table is not None])

    def _arm_or_warn(self, followed: FollowedProcess, probe: PlaceProbe, mappings: list[Mapping]) -> None:
        try:
            self._arm(followed, probe, mappings)
            self._arm_waiting(followed, probe)
        except (ControlError, CaptureError) as error:
            followed.warnings.append(f"{probe.where.text}: {error.message}")

    def _arm_all(self, followed: FollowedProcess, mappings: list[Mapping]) -> None:
        with self._lock, self._processes.holdings.of(followed).capturing_together():
            for look in self._looks:
                look(followed, mappings)
            for probe in self._probes.values():
                if not probe.where.is_system_call:
                    self._arm_or_warn(followed, probe, mappings)

    def _arm(self, followed: FollowedProcess, probe: PlaceProbe, mappings: list[Mapping]) -> None:
        for address in sorted(probe.where.find_in(self._images, mappings)):
            self._arm_at(followed, probe, address)

    def _arm_waiting(self, followed: FollowedProcess, probe: PlaceProbe) -> None:
        """What a probe names may have been loaded by now."""
        waiting = [place for place in probe.waiting if place[0] == followed.pid]
        probe.waiting.difference_update(waiting)
        for _, address, mark in sorted(waiting):
            self._arm_at(followed, probe, address, mark)

    def _arm_at(self, followed: FollowedProcess, probe: PlaceProbe, address: int, mark: int = 0) -> None:
        form = probe.wanted.form_at(followed.pid, followed.memory_pid, address)
        if form is None:
            probe.waiting.add((followed.pid, address, mark))
            return
        if mark:
            form = form.only_behind(mark)
        holding = self._processes.holdings.of(followed)
        if probe.wish.stops:
            holding.be_heard(self._hear)
        if probe.table is not None:
            probe.table.have_in(followed.shared.aggregates)
        holding.visits.note_overdue = self.note_overdue
        self._ask_for_room(followed.pid, address, probe, form)
        probe.take(followed.pid, address, mark, form)
        self._there.setdefault(_place(followed.pid, address), set()).add(probe.number)
        self._known.clear()
        for row in probe.rows(address, form, self._kind_of):
            holding.add_capture(row, self._on_visit if probe.wish.stops else None)

    def _kind_of(self, number: int, form: Form) -> int:
        """The number of the calls of a probe whose returns are captured by a form. Raises ControlError."""
        key = number, form.pack(), b"" if form.entry is None else form.entry.pack()
        with self._lock:
            kind = self._kinds.setdefault(key, len(self._kinds) + 1)
        if kind > MAX_CALL_KINDS:
            raise ControlError("too many probes of returns were ever asked for in this session")
        return kind

    def _ask_for_room(self, pid: Pid, address: int, probe: PlaceProbe, form: Form) -> None:
        """Raises ControlError where a place does not hold one more capture."""
        # What comes back to there may be told of, too.
        # What is taken at a return is alone there, as far as is known by now.
        fits = form.room.add(CaptureRoom()) is not None
        n, room = 2, probe.room_of(form).add(CaptureRoom()) if fits else None
        others = self._there.get(_place(pid, address), set()) - {probe.number}
        for other in [self._probes[number] for number in others if number in self._probes]:
            for there in other.forms_at(pid, address):
                n, room = n + 1, room and room.add(other.room_of(there))
        if n > MAX_CAPTURES_AT_PLACE or room is None:
            raise ControlError(f"{probe.where.text}: there is no room for one more capture at this place")

    def _inherit(self, child: FollowedProcess, parent: FollowedProcess) -> None:
        """A child begins, which returns from what one of its parent's threads has called."""
        with self._lock:
            self._open.inherit(child.pid, parent.pid)

    @property
    def n_missed(self) -> int:
        """Returns that could not be waited for: there was no room for the place, or too many calls were open."""
        return self._n_unmet + self._open.n_forgotten

    def note_overdue(self) -> None:
        """A thread went on by itself."""
        self.n_overdue += 1

    def _on_visit(self, followed: FollowedProcess, thread: StoppedThread) -> bool:
        """A thread came to one of the places; whether it is to wait there."""
        with self._lock:
            stop = self._find_stop(followed, thread)
        if stop is not None:
            self._tell(stop)
        return stop is not None

    def _find_stop(self, followed: FollowedProcess, thread: StoppedThread) -> Stop | None:
        """What is to be told of a thread; None: nothing."""
        holding = self._processes.holdings.of(followed)
        returned = self._open.close(followed, thread)
        if returned is not None:
            still = [number for number in returned.probes if number in self._probes]
            then = self._find_stop(followed, thread)
            if not still:
                return then
            return Stop(
                holding,
                thread,
                self._forms_at(followed.pid, returned.function, still),
                is_return=True,
                call=returned.call,
                function=returned.function,
                kept=returned.kept,
                began_ns=returned.began_ns,
                then=then,
            )
        where = followed.pid, thread.pc
        if where not in self._known:
            returns = self._forms_at(*where, self._numbers_of(Wish.RETURN))
            self._known[where] = list(returns), self._forms_at(*where, self._numbers_of(Wish.CALL))
        returning, called = self._known[where]
        call = self._expect_return(followed, holding, thread, returning) if returning else 0
        return Stop(holding, thread, called, is_return=False, call=call, function=int(thread.pc)) if called else None

    def _numbers_of(self, wish: Wish) -> list[int]:
        return [number for number, probe in self._probes.items() if probe.wish == wish]

    def _forms_at(self, pid: Pid, address: int, numbers: list[int]) -> dict[int, Form]:
        """What those probes take at an address that are there."""
        forms = {number: self._probes[number].form_at(pid, address) for number in numbers}
        return {number: form for number, form in forms.items() if form is not None}

    def _expect_return(
        self, followed: FollowedProcess, holding: Holding, thread: StoppedThread, probes: list[int]
    ) -> int:
        """Have the thread stop when the call returns, in front of whose first instruction it is; the call's number."""
        word = read_memory(followed.memory_pid, thread.stack_pointer, WORD_BYTES)
        return_pc = int.from_bytes(word, "little")
        try:
            if len(word) < WORD_BYTES:
                raise ControlError("the stack can't be read")
            if return_pc not in holding.visits.on_visit:
                # The thread carries it out before it goes on, and so does every other that comes by here.
                holding.add_capture(stop_always(return_pc), self._on_visit)
        except ControlError:
            self._n_unmet += len(probes)
            return 0
        kept = self._keep(followed, thread, probes)
        return self._open.open(followed, thread, return_pc, probes, kept, time.monotonic_ns())

    def _keep(
        self, followed: FollowedProcess, thread: StoppedThread, probes: list[int]
    ) -> dict[int, tuple[Value, ...]]:
        """What probes want to know of a call when it returns, by their numbers."""
        kept: dict[int, tuple[Value, ...]] = {}
        for number in probes:
            form = self._probes[number].form_at(followed.pid, thread.pc)
            if form is not None and form.entry is not None and form.entry.fields:
                place = ThreadPlace(followed.pid, followed.memory_pid, thread)
                kept[number] = interpret(form.entry, place) or ()
        return kept


def _place(pid: Pid, address: int) -> tuple[Pid, int]:
    """An address of a process; a system call is in all of them."""
    return Pid(0) if address >= CALL_PLACES else pid, address
