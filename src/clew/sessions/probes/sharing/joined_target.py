"""A process that another session has, which has this one's probes there: in the place of a `ProbedTarget`.

Runs in the controller, in the thread that owns the session. What the other one tells is not believed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from clew.address import Pid, Tid
from clew.errors import CaptureError, ClewError, TargetError, UsageError
from clew.probing.native import Technique
from clew.process.aggregate_tables import AggregateTables
from clew.process.maps import Mapping, read_maps
from clew.protocol._constants import CaptureType
from clew.sessions.capture_sink import CaptureSink
from clew.sessions.probes.asked import N_NUMBERS, AskedProbe, Asker
from clew.sessions.probes.probe_sites import ArmedProbe
from clew.sessions.probes.sharing.channel import Channel, Message
from clew.sessions.probes.sharing.joined_process import JoinedProcess, shape_from_json
from clew.sessions.probes.sharing.joined_rings import JoinedRings
from clew.sessions.probes.sharing.numbers import renumber
from clew.sessions.probes.sharing.told_specs import spec_to_json
from clew.sessions.probes.waiting import Waiting

__all__ = ["JoinedTarget", "OwnerGoneError"]

_ANSWER_SECONDS: Final = 120.0
"""Thousands of places take seconds."""
_STEP_SECONDS: Final = 0.01
_ERRORS: Final = {"usage": UsageError, "capture": CaptureError}
_TECHNIQUES: Final = {one.name: one for one in Technique}


class OwnerGoneError(TargetError):
    """The session that had the process is gone: somebody else has it soon."""


class ToldPlace:
    """A place that is told of."""

    def __init__(self, name: str, address: int) -> None:
        self.name, self.address = name, address


class JoinedTarget:
    """Process `pid`, and what descends from it, which the session at the other end of `channel` has."""

    def __init__(
        self,
        channel: Channel,
        pid: Pid,
        joined: Message,
        asker: Asker,
        rings: JoinedRings,
        have_table: Callable[[AskedProbe, JoinedProcess], Any],
        meanwhile: Callable[[], None],
    ) -> None:
        """`joined` is the first message. `have_table` gives a process the table in which a probe adds up. `meanwhile`
        is called while this waits for an answer. Raises UsageError where what is told does not hold together."""
        self._channel, self.pid, self.asker, self.rings = channel, pid, asker, rings
        self._have_table, self._meanwhile = have_table, meanwhile
        self.origins = frozenset(Pid(one) for one in _numbers(joined.told.get("origins"))) | {pid}
        self.has_own_numbers = joined.told.get("has_own_numbers") is True
        self.takes_events = joined.told.get("takes_events") is not False
        self.probes: dict[int, AskedProbe] = {}
        """Those that are to be there, by their indices."""
        self._known: dict[int, AskedProbe] = {}
        """Those that ever were."""
        self.found: list[AskedProbe] = []
        self.place_names: dict[int, dict[int, str]] = {}
        self._armed_in: dict[Pid, list[ArmedProbe]] = {}
        self.mappings: list[Mapping] = []
        self._processes: dict[Pid, JoinedProcess] = {}
        self._answers: dict[int, dict[str, Any]] = {}
        self._n_asked = 0
        self._waiting: list[Waiting] = []
        self._has_left = False
        self._their_indices: dict[int, int] = {}
        """What the other session calls this one's probes."""
        self._n_lost: dict[Pid, int] = {}
        """How many events had been lost in each process when the other session was gone."""
        self.lost_at: float | None = None
        """Since when the other session is gone."""
        self._take_process(joined)

    @property
    def remarks(self) -> list[str]:
        """What is to be told people."""
        return self.asker.remarks

    @property
    def missing(self) -> dict[str, str]:
        """Why probes are nowhere, for people, by what was asked for."""
        return {one.spec.where: one.missing for one in self.probes.values() if one.missing}

    @property
    def pids(self) -> list[Pid]:
        """The processes that the other session has for this one."""
        return list(self._processes)

    @property
    def tables(self) -> list[AggregateTables]:
        """What is added up in them."""
        return [one.tables for one in self._processes.values()]

    @property
    def armed(self) -> list[ArmedProbe]:
        """What is probed now."""
        return [one for own in self._armed_in.values() for one in own]

    def fileno(self) -> int:
        """Of what something comes by."""
        return self._channel.fileno()

    # ----------------------------------------------------------------------------------------------- probes come and go

    def change(self, do: Callable[[], object]) -> None:
        """Have `do` change the probes; where the other session is gone they are as they are to be once another one
        is there. Raises what `do` raises."""
        with contextlib.suppress(OwnerGoneError):
            do()

    def add(self, probes: Iterable[AskedProbe]) -> None:
        """Have these probes, too. Raises TargetError, UsageError, CaptureError."""
        added = {probe.index: probe for probe in probes}
        self.probes |= added
        self._known |= added
        if added:
            told = [[index, spec_to_json(probe.spec)] for index, probe in added.items()]
            self._ask({"do": "add", "probes": told})

    def remove(self, indices: Iterable[int]) -> list[AskedProbe]:
        """Have the probes of these indices nowhere; those that there were. What they have told by then is here.
        Raises TargetError, UsageError."""
        removed = [self.probes.pop(index) for index in indices if index in self.probes]
        if removed:
            self._ask({"do": "remove", "indices": [probe.index for probe in removed]})
        return removed

    def catch_up(self) -> None:
        """Have all here that has come by now."""
        with contextlib.suppress(OwnerGoneError):
            self._ask({"do": "read"})

    # ------------------------------------------------------------------------------------------------------ what comes

    def answer(self) -> list[Waiting]:
        """Take what the other session tells; threads that wait for this one."""
        self._take_all()
        waiting, self._waiting = self._waiting, []
        return waiting

    def reply(self, slot: int) -> None:
        """Let a thread go on that waits."""
        self._channel.send({"do": "reply", "held": slot})

    def has_ended(self, seconds: float = 0) -> bool:
        """Whether no process of these is there any more, in so many seconds at most."""
        deadline = time.monotonic() + seconds
        while self._processes and not self._channel.is_closed:
            self._take_all()
            if not self._processes or time.monotonic() >= deadline:
                break
            self._channel.wait(min(_STEP_SECONDS, seconds))
        return not self._processes and not self.is_lost

    def shares_with(self, pid: Pid) -> bool:
        """Whether a process is one of these, or a forks' child of them."""
        return pid in self._processes or pid in self.rings.processes

    # ------------------------------------------------------------------------------------------------------------- end

    @property
    def is_lost(self) -> bool:
        """Whether the other session is gone, and had processes still."""
        self._note_loss()
        return self.lost_at is not None and bool(self._processes)

    @property
    def is_free(self) -> bool:
        """Whether what the other session had in the processes is gone, too, so that another one can have them."""
        return not any(one.is_served for one in self._processes.values())

    def let_memory_go(self) -> None:
        """Keep what was added up; nothing of the other session is kept open."""
        for one in self._processes.values():
            one.close()

    def take_left(self) -> None:
        """Have here what threads wrote that the other session did not read."""
        numbers = {
            index * N_NUMBERS + which: own * N_NUMBERS + which
            for own, index in self._their_indices.items()
            for which in range(1, N_NUMBERS + 1)
        }
        for process in self._processes.values():
            sink = CaptureSink()
            for number in numbers:
                sink.watch(number)
            for pid, records in process.left.read():
                sink.keep(pid or process.pid, records)
            taken = zip(numbers, sink.take_together(numbers), strict=True)
            found = [(number, one) for number, some in taken for one in some]
            self.rings.take((numbers[number], renumber(one, number, numbers[number])) for number, one in found)
            self.rings.lose(max(process.left.count_lost() - self._n_lost.get(process.pid, 0), 0))

    def leave(self) -> tuple[list[str], list[Pid]]:
        """Have the other session take this one's probes out; what they came to until then is here."""
        if not self._has_left and not self._channel.is_closed:
            with contextlib.suppress(OwnerGoneError):
                self._ask({"do": "leave"})
            self._has_left = True
        return [], []

    def close(self) -> list[str]:
        """Leave, and let go."""
        self.leave()
        self.release()
        return []

    def release(self) -> None:
        """Let go of what is kept of it."""
        self._has_left = True
        self.let_memory_go()
        self._channel.close()

    # -------------------------------------------------------------------------------------------------- how it is done

    def _ask(self, told: dict[str, Any]) -> None:
        """Have the other session do something, and wait for it. Raises ClewError, OwnerGoneError."""
        self._n_asked += 1
        number = self._n_asked
        self._channel.send(told | {"ask": number})
        deadline = time.monotonic() + _ANSWER_SECONDS
        while number not in self._answers:
            if self._channel.is_closed or time.monotonic() > deadline:
                self._channel.close()
                self._note_loss()
                raise OwnerGoneError(self.pid, f"process {self.pid}: the session that has it is gone")
            self._channel.advance()
            self._channel.wait(_STEP_SECONDS)
            self._take_all()
            self._meanwhile()
        answer = self._answers.pop(number)
        error = answer.get("error")
        if isinstance(error, str):
            kind = answer.get("kind")
            make = _ERRORS.get(kind) if isinstance(kind, str) else None
            raise make(error) if make is not None else TargetError(self.pid, error)

    def _note_loss(self) -> None:
        if self._channel.is_closed and not self._has_left and self.lost_at is None:
            self.lost_at = time.monotonic()
            self._n_lost = {one.pid: one.left.count_lost() for one in self._processes.values()}

    def _take_all(self) -> None:
        self._channel.advance()
        try:
            for message in self._channel.receive():
                self._take(message)
        except (ClewError, ValueError) as error:
            self.asker.remark(f"process {self.pid}: the session that has it tells what it should not: {error}")
            self._channel.close()
        self._note_loss()

    def _take(self, message: Message) -> None:
        told = message.told
        match message.do:
            case "events":
                self.rings.take_told(told, message.data)
            case "indices":
                pairs = map(_list, _list(told.get("indices")))
                self._their_indices.update((_number(own), _number(one)) for own, one in pairs)
            case "answer":
                self._answers[_number(told.get("to"))] = told
            case "lost":
                self.rings.lose(_number(told.get("count")))
            case "held":
                self._waiting.append(
                    Waiting(
                        self,
                        _number(told.get("held")),
                        _number(told.get("number")),
                        Pid(_number(told.get("pid"))),
                        Tid(_number(told.get("tid"))),
                        Pid(_number(told.get("real_pid"))),
                    )
                )
            case "process":
                self._take_process(message)
            case "ended":
                ended = self._processes.pop(Pid(_number(told.get("pid"))), None)
                if ended is not None:
                    self._armed_in.pop(ended.pid, None)
                    ended.close()
            case "state":
                self._take_state(told)
            case "remark":
                self.asker.remark(_text(told.get("text")))
            case "clockless":
                self.takes_events = False

    def _take_process(self, message: Message) -> None:
        if len(message.fds) != 1:
            raise UsageError("a process comes with its memory")
        process = JoinedProcess(message.told, message.fds[0])
        before = self._processes.pop(process.pid, None)
        if before is not None:
            before.close()
        self._processes[process.pid] = process

    def _take_state(self, told: dict[str, Any]) -> None:
        """Where this session's probes are in a process."""
        process = self._processes.get(Pid(_number(told.get("pid"))))
        if process is None:
            return
        with contextlib.suppress(OSError):
            self.mappings = read_maps(process.pid) or self.mappings
        for number, kinds in _list(told.get("kinds")):
            self._take_kinds(_number(number), kinds)
        for index, kinds, shape in _list(told.get("sums")):
            probe = self._known.get(_number(index))
            if probe is not None and probe.spec.wish is not None:
                probe.wanted_sum.be_told([CaptureType(_number(one)) for one in _list(kinds)])
                table = self._have_table(probe, process)
                process.tables.place(table.shape, shape_from_json(shape))
        armed = map(self._read_armed, _list(told.get("armed")))
        self._armed_in[process.pid] = [one for one in armed if one is not None]
        self.found = [
            self._known[one]
            for one in dict.fromkeys([*(probe.index for probe in self.found), *_found(told)])
            if one in self._known
        ]
        for index, names in _list(told.get("names")):
            if type(index) is int and isinstance(names, list):
                own_names = {_number(address): _text(name) for address, name in map(_list, names)}
                self.place_names.setdefault(index, {}).update(own_names)
        missing = {_number(index): _text(text) for index, text in map(_list, _list(told.get("missing")))}
        for index, probe in self.probes.items():
            probe.missing = missing.get(index, "")

    def _take_kinds(self, number: int, kinds: Any) -> None:
        probe = self._known.get((number - 1) // N_NUMBERS)
        form = None if probe is None else probe.forms().get(number)
        if form is not None:
            form.wanted.be_told([CaptureType(_number(one)) for one in _list(kinds)])

    def _read_armed(self, told: Any) -> ArmedProbe | None:
        index, name, place, address, role, technique, reason = _list(told)
        known = _TECHNIQUES.get(_text(technique))
        if known is None or index not in self._known:
            return None
        where = ToldPlace(_text(place), _number(address))
        return ArmedProbe(index, _text(name), where, where.address, _text(role), known, _text(reason))


def _found(told: dict[str, Any]) -> list[int]:
    return [one for one in _list(told.get("found")) if type(one) is int]


def _numbers(told: Any) -> list[int]:
    return [_number(one) for one in _list(told)]


def _list(told: Any) -> list[Any]:
    if not isinstance(told, list):
        raise UsageError("a list was expected")
    return told


def _number(told: Any) -> int:
    if type(told) is not int or not 0 <= told < 1 << 64:
        raise UsageError("a number was expected")
    return told


def _text(told: Any) -> str:
    if not isinstance(told, str):
        raise UsageError("a text was expected")
    return told
