"""Functions at which a session's threads stop to tell somebody: found in what is loaded, and in what is loaded later.

Runs in the controller, in the one thread that owns the target. Who comes to a function, or back from it, waits there
alone; the others run on.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

from clew.address import Pid, RemoteAddress, Tid
from clew.dataclass import dataclass, field
from clew.errors import ControlError
from clew.process.maps import Mapping
from clew.recording.following.holding import ALWAYS
from clew.sessions.memory import Images, read_memory

if TYPE_CHECKING:
    from clew.recording.following.followed import FollowedProcess
    from clew.recording.following.holding import Holding, StoppedThread
    from clew.recording.following.processes import Processes

__all__ = ["Places", "Stop", "Where"]

MAX_OPEN_CALLS = 4096
"""Of a thread: calls that are to be told of when they return. What never returns is forgotten by what does."""


@dataclass(frozen=True)
class Where:
    """A function that is meant: at an address, or of that name, in the images of a name or in all of them.

    `offset` is how far behind its start.
    """

    text: str
    address: int | None
    image: str
    symbol: str
    offset: int

    def find_in(self, images: Images, mappings: list[Mapping]) -> set[int]:
        """The addresses of it that lie in some mappings."""
        if self.address is not None:
            return {self.address} if any(one.start <= self.address < one.end for one in mappings) else set()
        found = set()
        for image in images.in_mappings(mappings):
            symbols = images.symbols(image) if self.image in ("", image.name, image.path) else None
            if symbols is not None:
                places = (image.base + int(place) + self.offset for place, _ in symbols.find_by_name(self.symbol))
                found |= {place for place in places if image.start <= place < image.end}
        return found


@dataclass(frozen=True)
class Stop:
    """A thread that waits at a function, or behind a call of it (`is_return`).

    `probes` are the numbers of those who want to know; `call` numbers the calls of a session, from 1 on, 0 for one
    whose return nobody wants to know of.
    """

    pid: Pid
    memory_pid: Pid
    thread: StoppedThread
    probes: list[int]
    is_return: bool
    call: int


@dataclass(frozen=True)
class _Open:
    """A call that is to be told of when it returns: the stack pointer is above `stack_pointer` then."""

    return_pc: int
    stack_pointer: int
    probes: list[int]
    call: int


@dataclass
class _Probe:
    where: Where
    form: bytes
    wants_call: bool
    wants_return: bool
    addresses: set[tuple[Pid, int]] = field(default_factory=set)


class Places:
    """Those of one session. `tell` is given every thread that stops; somebody has it go on by `let_go`."""

    def __init__(self, processes: Processes, images: Images, tell: Callable[[Stop], None]) -> None:
        self._processes, self._images, self._tell = processes, images, tell
        self._probes: dict[int, _Probe] = {}
        self._numbers = count(1)
        self._calls = count(1)
        self._open: dict[tuple[Pid, Tid], list[_Open]] = {}
        self.n_missed = 0
        """Returns that could not be waited for: there was no room for the place."""
        self.n_overdue = 0
        """Threads that went on by themselves, since nobody let them go in time."""
        processes.tell_code_to(self._arm_all)

    def add(
        self, where: Where, form: bytes, mappings: list[Mapping], pid: Pid, *, wants_call: bool, wants_return: bool
    ) -> int:
        """Stop threads at a function, of what process `pid` has mapped and of whatever code comes; the probe's number.

        Calls where the condition of the packed `form` does not hold stop nobody. All threads are to be stopped. Raises
        ControlError where there is no room.
        """
        # What a condition says of a return is not known when the call begins.
        form = ALWAYS if wants_return else form
        number, probe = next(self._numbers), _Probe(where, form, wants_call, wants_return)
        self._probes[number] = probe
        try:
            for followed in self._processes.live:
                if followed.pid == pid:
                    self._arm(followed, number, probe, mappings)
        except ControlError:
            self.remove(number)
            raise
        return number

    def count(self, number: int) -> int:
        """At how many places a probe is."""
        probe = self._probes.get(number)
        return 0 if probe is None else len(probe.addresses)

    def remove(self, number: int) -> None:
        """Tell a probe of nothing any more; calls that are open are not told of when they return."""
        probe = self._probes.pop(number, None)
        if probe is None:
            return
        for followed in self._processes.live:
            forms: dict[RemoteAddress, list[bytes]] = {}
            for other in self._probes.values():
                # A child has its parent's places, at the same addresses.
                for _, address in other.addresses:
                    forms.setdefault(RemoteAddress(address), []).append(other.form)
            for call in (call for (pid, _), calls in self._open.items() if pid == followed.pid for call in calls):
                forms.setdefault(RemoteAddress(call.return_pc), []).append(ALWAYS)
            self._processes.holdings.of(followed).keep_places(forms)

    def let_go(self, pid: Pid, tid: Tid, registers: list[int] | None) -> bool:
        """Let a thread go on that stopped, with other registers if some are given; False: it has gone on already."""
        for followed in self._processes.live:
            if followed.pid == pid:
                return self._processes.holdings.of(followed).let_go(tid, registers)
        return False

    def _arm_all(self, followed: FollowedProcess, mappings: list[Mapping]) -> None:
        for number, probe in self._probes.items():
            try:
                self._arm(followed, number, probe, mappings)
            except ControlError as error:
                followed.warnings.append(f"{probe.where.text}: {error.message}")

    def _arm(self, followed: FollowedProcess, number: int, probe: _Probe, mappings: list[Mapping]) -> None:
        holding = self._processes.holdings.of(followed)
        holding.visits.note_overdue = self._note_overdue
        for address in sorted(probe.where.find_in(self._images, mappings)):
            probe.addresses.add((followed.pid, address))
            holding.add_place(RemoteAddress(address), self._on_visit, probe.form)

    def _note_overdue(self) -> None:
        self.n_overdue += 1

    def _on_visit(self, followed: FollowedProcess, thread: StoppedThread) -> bool:
        """A thread came to one of the places; whether it is to wait there."""
        holding = self._processes.holdings.of(followed)
        returned = self._find_return(followed, thread)
        if returned is not None and returned.probes:
            self._tell(Stop(followed.pid, followed.memory_pid, thread, returned.probes, True, returned.call))
            return True
        # A child has its parent's places, at the same addresses.
        here = [one for one in self._probes.items() if any(address == thread.pc for _, address in one[1].addresses)]
        if not here:
            return False
        returning = [number for number, probe in here if probe.wants_return]
        call = self._expect_return(followed, holding, thread, returning) if returning else 0
        called = [number for number, probe in here if probe.wants_call]
        if called:
            self._tell(Stop(followed.pid, followed.memory_pid, thread, called, False, call))
        return bool(called)

    def _find_return(self, followed: FollowedProcess, thread: StoppedThread) -> _Open | None:
        """The call that a thread has come back from; what it called and left otherwise is forgotten."""
        calls = self._open.get((followed.pid, thread.tid), [])
        while calls and calls[-1].stack_pointer < thread.stack_pointer:
            call = calls.pop()
            if call.return_pc == thread.pc and (not calls or calls[-1].stack_pointer >= thread.stack_pointer):
                still = [number for number in call.probes if number in self._probes]
                return _Open(call.return_pc, call.stack_pointer, still, call.call)
        return None

    def _expect_return(
        self, followed: FollowedProcess, holding: Holding, thread: StoppedThread, probes: list[int]
    ) -> int:
        """Have the thread stop when the call returns, in front of whose first instruction it is; the call's number."""
        word = read_memory(followed.memory_pid, thread.stack_pointer, 8)
        return_pc = int.from_bytes(word, "little")
        calls = self._open.setdefault((followed.pid, thread.tid), [])
        if len(word) < 8 or len(calls) >= MAX_OPEN_CALLS:
            self.n_missed += len(probes)
            return 0
        try:
            if return_pc not in holding.visits.on_visit:
                # The thread carries it out before it goes on, and so does every other that comes by here.
                holding.add_place(RemoteAddress(return_pc), self._on_visit)
        except ControlError:
            self.n_missed += len(probes)
            return 0
        number = next(self._calls)
        calls.append(_Open(return_pc, thread.stack_pointer, probes, number))
        return number
