"""Calls of a session's target beside the processes that make them: what each has to do with which entities.

Runs in the controller. Processes are those of a trace, or those that have begun so far.
"""

from __future__ import annotations

import os
from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from clew.api.descriptions import Descriptions
from clew.api.entities.scene import CURRENT_DIRECTORY, Scene, Told, Touch
from clew.api.entities.world import World
from clew.api.values import signed
from clew.api.vocabulary import RESULT
from clew.dataclass import dataclass

if TYPE_CHECKING:
    from clew.api.entities.holders import Holder
    from clew.sessions.api_calls import ApiCall
    from clew.sessions.session import Session

__all__ = ["CallWorld", "Descriptor", "LiveWorld", "Process", "Processes", "read_descriptors"]


@dataclass(frozen=True)
class Process:
    """A process, or a program that one executes: `process_id` is its number in a trace, -1 without one.

    Times are nanoseconds since 1970.
    """

    process_id: int
    pid: int
    parent_pid: int
    executable: str
    command: list[str]
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Descriptor:
    """A descriptor that a process has: `kind` of what it leads to, the `name` of that, whether exec closes it."""

    number: int
    kind: str
    name: str
    closes_on_exec: bool


def read_descriptors(pid: int) -> tuple[str | None, list[Descriptor]]:
    """Where a process is, and its descriptors, out of /proc; what can't be read is left out."""
    directory, found = None, []
    with suppress(OSError):
        directory = os.readlink(f"/proc/{pid}/cwd")
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        names = []
    for number in sorted(map(int, names)):
        with suppress(OSError):
            link = os.readlink(f"/proc/{pid}/fd/{number}")
            told = Path(f"/proc/{pid}/fdinfo/{number}").read_text().splitlines()
            flags = next(line for line in told if line.startswith("flags"))
            is_closing = bool(int(flags.split()[1], 8) & os.O_CLOEXEC)
            found.append(Descriptor(number, _kind_of(link), link, is_closing))
    return directory, found


def _kind_of(link: str) -> str:
    """What the link of a descriptor leads to, by its form (proc(5))."""
    if link.startswith("/dev/"):
        return "device"
    if link.startswith("/"):
        return "memfd" if link.startswith("/memfd:") else "file"
    word = link.removeprefix("anon_inode:").strip("[]").split(":")[0]
    kinds = {"socket": "socket", "pipe": "pipe", "eventpoll": "epoll", "eventfd": "eventfd", "timerfd": "timer"}
    return kinds.get(word, "pidfd" if word == "pidfd" else "other")


class Processes:
    """Processes by their numbers, in the order in which they began; those that nobody has seen yet wait."""

    def __init__(self, processes: Iterable[Process] = ()) -> None:
        self._by_pid: dict[int, list[Process]] = {}
        self._waiting: list[Process] = []
        for process in processes:
            self.add(process)

    def add(self, process: Process) -> None:
        """One more, which began at any time."""
        insort(self._by_pid.setdefault(process.pid, []), process, key=_began)
        insort(self._waiting, process, key=_began)

    def find(self, pid: int, time_ns: int) -> Process | None:
        """What a number is at a time; before the first one of it that is the first."""
        rows = self._by_pid.get(pid)
        return rows[max(bisect_right(rows, time_ns, key=_began) - 1, 0)] if rows else None

    def is_first(self, process: Process) -> bool:
        """Whether it is no program that another one's process executed."""
        return self._by_pid[process.pid][0] is process

    def take(self, time_ns: int, needed: Iterable[Process] = ()) -> list[Process]:
        """Those that wait and began by a time, or before one that is needed."""
        limit_ns = max([time_ns, *(one.start_ns for one in needed)])
        n = bisect_right(self._waiting, limit_ns, key=_began)
        taken, self._waiting = self._waiting[:n], self._waiting[n:]
        return taken


class LiveWorld:
    """Tells what calls are about while their processes run: names of what arguments and results stand for."""

    def __init__(self, session: Session, descriptions: Descriptions) -> None:
        """The session's process is stopped in front of its first call that is told, or has just been attached to."""
        self._session, self._descriptions, self._n_begun = session, descriptions, 0
        self._calls = CallWorld(descriptions, Processes(), session.pid, is_process=_is_process)

    def see(self, calls: Sequence[ApiCall]) -> Iterator[tuple[ApiCall, list[Touch]]]:
        """Calls that have returned, each with what it has to do with what."""
        begun = self._session.processes_begun()
        for who, start_ns in begun[self._n_begun :]:
            pid, parent = int(who.pid), int(who.parent_pid)
            self._calls.processes.add(Process(-1, pid, parent, who.executable, who.command, start_ns, start_ns))
        self._n_begun = len(begun)
        self._calls.prepare(calls)
        for call in calls:
            yield call, self._calls.see(call)[1]

    def name(self, entity_id: int) -> str:
        """What an entity is called: the path that it has now, if it has one."""
        entity = self._calls.world.things[entity_id]
        path = entity.details.get("path")
        return path if isinstance(path, str) else entity.name

    def names(self, call: ApiCall) -> dict[int, str]:
        """What the descriptors that a call names stand for, by argument; RESULT for that which it gave."""
        holder = self._calls.holder(call)
        found = {}
        for index, number in self.descriptors(call).items():
            time_ns = call.end_ns if index == RESULT else call.time_ns
            slot = holder.files.get(("fd", number), time_ns) or holder.files.last(("fd", number), time_ns)
            if number == CURRENT_DIRECTORY and holder.place.directory is not None:
                found[index] = holder.place.directory
            elif slot is not None and number >= 0:
                found[index] = self.name(slot.entity_id)
        return found

    def name_of(self, call: ApiCall, number: int) -> str | None:
        """What a descriptor in a structure stands for, that the call was given or that it gave; None: nobody knows."""
        files = self._calls.holder(call).files
        slot = files.get(("fd", number), call.end_ns) or files.get(("fd", number), call.time_ns)
        return None if slot is None or number < 0 else self.name(slot.entity_id)

    def descriptors(self, call: ApiCall) -> dict[int, int]:
        """The numbers of descriptors among a call's arguments, and its result if that is one."""
        numbers = [value if isinstance(value, int) else None for value in call.values]
        seen = self._descriptions.with_values(call.function, numbers)
        values = dict(enumerate(numbers)) | {RESULT: call.result}
        told = {one.index: values.get(one.index) for one in seen.parameters or () if one.raw_type == "fd"}
        return {index: signed(number, 32) for index, number in told.items() if number is not None}


def _is_process(number: int) -> bool | None:
    """Whether a number that is in use is that of a process, not of another thread."""
    try:
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) == number for line in lines if line.startswith("Tgid:")), None)


def _began(process: Process) -> int:
    return process.start_ns


def _is_maker(call: ApiCall) -> bool:
    """Whether a process or thread was made."""
    makes = any(effect.kind == "StartTask" for effect in call.function.effects)
    return makes and call.result is not None and call.result > 0


class CallWorld:
    """Has each call touch what it is about; `world`: what is held now, when the last one has returned."""

    def __init__(
        self,
        descriptions: Descriptions,
        processes: Processes,
        pid: int,
        is_process: Callable[[int], bool | None] = lambda _: None,
    ) -> None:
        """`pid`: the first process, which is there and has made no call yet that is told. `is_process`: whether a
        number is that of a process, not of a thread; None: nobody knows."""
        self.processes = processes
        self.world = World(descriptions)
        self._descriptions, self._is_process = descriptions, is_process
        self._makers: dict[int, tuple[int, frozenset[str]]] = {}
        self._threads: set[int] = set()
        self._in_parents: dict[int, int] = {}
        """Children that have their parent's memory until they execute a program, and when they were made."""
        self._first = (pid, *read_descriptors(pid))

    def start_again(self, processes: Processes) -> CallWorld:
        """The same from the beginning, with other processes."""
        made = object.__new__(CallWorld)
        made.processes, made.world, made._descriptions = processes, World(self._descriptions), self._descriptions
        made._makers, made._first, made._is_process = {}, self._first, lambda _: None
        made._threads, made._in_parents = set(), {}
        return made

    def prepare(self, calls: Iterable[ApiCall]) -> None:
        """Take note of what processes share with their makers, which return later than their children may begin."""
        for call in calls:
            for effect in call.function.effects if _is_maker(call) else ():
                if effect.kind == "StartTask" and call.result is not None:
                    told = Told(call.pid, call.tid, call.time_ns, call.time_ns, call.function, call.values, call.result)
                    shared = Scene(self.world, self._descriptions, told).shared(effect)
                    self._makers[call.result & 0xFFFFFFFF] = (call.time_ns, shared)

    def see(self, call: ApiCall) -> tuple[Process | None, list[Touch]]:
        """Whose call it is, and what it has to do with what. Calls come in the order in which they return."""
        end_ns = call.end_ns
        process = self.processes.find(call.pid, call.time_ns)
        made = self.processes.find(call.result or 0, end_ns) if _is_maker(call) else None
        # Who calls is there, whatever the clocks say, and who was made, although it may begin later.
        self.start(end_ns, [one for one in (process, made) if one is not None])
        pid = self._acting(call, process)
        told = Told(pid, call.tid, call.time_ns, end_ns, call.function, call.values, call.result)
        return process, self.world.see(told)

    def holder(self, call: ApiCall) -> Holder:
        """Who holds what a call names, which was seen."""
        return self.world.holder(call.tid if call.tid in self._in_parents else call.pid, call.time_ns)

    def _acting(self, call: ApiCall, process: Process | None) -> int:
        """The number of the process that makes a call: of a child in its parent's memory (vfork) its own, which the
        trace has as a thread of its parent's until it executes a program."""
        tid = call.tid
        if tid == call.pid or tid in self._threads:
            return call.pid
        made_ns, shared = self._makers.get(tid, (call.time_ns, frozenset[str]()))
        if tid not in self._makers and tid not in self._in_parents:
            is_process = self._is_process(tid)
            if is_process is False:
                self._threads.add(tid)
            if not is_process:
                return call.pid
        if "Thread" in shared:
            return call.pid
        begun_ns = self._in_parents.get(tid)
        if begun_ns is None or (tid in self._makers and begun_ns < made_ns):
            self._in_parents[tid] = made_ns
            name = f"process {tid}" if process is None else process.executable
            self.world.add_process(tid, name, made_ns, call.pid, shared)
        return tid

    def start(self, time_ns: int, needed: Sequence[Process] = ()) -> None:
        """All processes that are there at a time are known, and those that are needed."""
        for one in self.processes.take(time_ns, needed):
            if self._in_parents.pop(one.pid, one.start_ns + 1) <= one.start_ns:
                # It has been there, and executes its first program.
                holder = self.world.holder(one.pid, one.start_ns)
                holder.execute(one.start_ns)
                self.world.things[holder.entity_id].name = one.executable
            elif self.processes.is_first(one):
                made_ns, shared = self._makers.get(one.pid, (one.start_ns, frozenset()))
                begun_ns = min(made_ns, one.start_ns)
                holder = self.world.add_process(one.pid, one.executable, begun_ns, one.parent_pid, shared)
                first, directory, descriptors = self._first
                if one.pid == first:
                    holder.place.directory = directory
                    for descriptor in descriptors:
                        kind, name, closes = descriptor.kind, descriptor.name, descriptor.closes_on_exec
                        self.world.inherit(one.pid, descriptor.number, kind, name, one.start_ns, closes_on_exec=closes)
            else:
                holder = self.world.execute(one.pid, one.executable, one.start_ns)
            entity = self.world.things[holder.entity_id]
            entity.process_id, entity.first_ns, entity.last_ns = one.process_id, one.start_ns, one.end_ns
            entity.details["command"] = one.command
