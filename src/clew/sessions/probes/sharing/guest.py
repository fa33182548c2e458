"""A session that has its probes in processes of another one, as that one sees it.

Runs in the controller of the session that has the processes, in its thread. What guests tell is not believed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clew.errors import CaptureError, ClewError, UsageError
from clew.protocol._generated import CAPTURE_RECORD, RECORD_BYTES
from clew.sessions.probes.asked import N_NUMBERS, AskedProbe, Asker
from clew.sessions.probes.backends import BackendChoice
from clew.sessions.probes.sharing.channel import Channel, Message
from clew.sessions.probes.sharing.joined_process import shape_to_json
from clew.sessions.probes.sharing.left_rings import layout_to_json
from clew.sessions.probes.sharing.numbers import renumber
from clew.sessions.probes.sharing.told_specs import spec_from_json

if TYPE_CHECKING:
    from clew.sessions.aggregate_table import AggregateTable
    from clew.sessions.capture_sink import Captured
    from clew.sessions.probes.probed_target import ProbedTarget
    from clew.sessions.probes.sharing.host import Host
    from clew.sessions.probes.specs import ProbeSpec
    from clew.sessions.probes.waiting import Waiting

__all__ = ["Guest"]

_MAX_WAITING_BYTES: Final = 1 << 28
"""What a guest does not take that is stopped: more is lost."""
_MAX_INDEX: Final = 1 << 20
_MAX_PROBES: Final = 1 << 16


class _Place:
    """A guest in one process."""

    def __init__(self, asker: Asker, n_lost: int) -> None:
        self.asker, self.n_lost = asker, n_lost
        self.probes: dict[int, AskedProbe] = {}
        """By the guest's indices."""
        self.n_armed = -1
        """How often the process had been looked at when the guest was told of it last."""
        self.n_remarks = 0


class Guest:
    """The session at the other end of `channel`, whose probes are by techniques as `choice` has them."""

    def __init__(self, host: Host, channel: Channel, choice: BackendChoice) -> None:
        self._host, self.channel, self._choice = host, channel, choice
        self._specs: dict[int, ProbeSpec] = {}
        self._indices: dict[int, int] = {}
        """The host's indices of its probes."""
        self._own: dict[int, int] = {}
        """Its indices of the host's."""
        self._wanted: set[int] = set()
        self._places: dict[ProbedTarget, _Place] = {}
        self._tables: dict[int, AggregateTable] = {}
        self._numbers: list[int] = []
        """By which the host knows what is captured for it."""
        self._held: dict[int, Waiting] = {}
        self._n_held = 0
        self._named: set[int] = set()
        self._n_lost = 0

    @property
    def targets(self) -> list[ProbedTarget]:
        """The processes in which it is."""
        return list(self._places)

    def is_in(self, target: ProbedTarget) -> bool:
        """Whether it is in a process."""
        return target in self._places

    # ------------------------------------------------------------------------------------------------ where it is

    def join(self, target: ProbedTarget, do: str = "process") -> None:
        """Be in one more process, with all its probes that are wanted there."""
        shared = target.process.shared
        told = {
            "do": do,
            "pid": target.pid,
            "task": target.process.task,
            "aggregates": shared.offset + shared.layout.aggregates_offset,
            "layout": layout_to_json(shared),
            "origins": sorted(target.origins),
            "has_own_numbers": target.has_own_numbers,
            "takes_events": target.takes_events,
        }
        self.channel.send(told, fds=[shared.fd])
        self._places[target] = _Place(Asker(self._choice), target.rings.count_lost())
        with contextlib.suppress(ClewError):
            self._put(target, self._wanted)
        self._places[target].asker.refused.clear()
        self.tell_state(target)

    def forget(self, target: ProbedTarget, *, is_told: bool = True) -> None:
        """A process is not there any more, or is left by everybody."""
        self.tell_losses()
        del self._places[target]
        for number, waiting in list(self._held.items()):
            if waiting.target is target:
                del self._held[number]
        if is_told and not any(one.pid == target.pid for one in self._places):
            # Otherwise it is what it has executed.
            self.channel.send({"do": "ended", "pid": target.pid})

    def leave(self) -> None:
        """Have its probes nowhere any more."""
        for waiting in self._held.values():
            waiting.target.reply(waiting.slot)
        self._held.clear()
        for target in self.targets:
            with contextlib.suppress(ClewError, OSError):
                target.change(partial(target.remove, set(self._own)))
        self.forward()
        for number in self._numbers:
            self._host.sink.forget(number)
        self._places.clear()

    def end_events(self, target: ProbedTarget) -> None:
        """A process can have no events any more."""
        if target in self._places:
            gone = {self._indices[one] for one in self._specs if self._specs[one].has_events}
            target.change(partial(target.remove, gone))
            self.channel.send({"do": "clockless"})

    # ------------------------------------------------------------------------------------------------- what it asks

    def hear(self, message: Message) -> None:
        """Do what it asks, and answer."""
        told = message.told
        for fd in message.fds:
            # Nobody asked for any.
            os.close(fd)
        answer: dict[str, Any] = {"do": "answer", "to": told.get("ask")}
        try:
            match message.do:
                case "add":
                    self._add(told.get("probes"))
                case "remove":
                    self._remove(told.get("indices"))
                case "reply":
                    self._reply(told.get("held"))
                    return
                case "read":
                    self._catch_up()
                case "leave":
                    self._catch_up()
                    self.leave()
                case _:
                    raise UsageError(f"no such wish: {message.do!r}")
        except ClewError as error:
            kind = "usage" if isinstance(error, UsageError) else "capture" if isinstance(error, CaptureError) else ""
            answer |= {"error": error.message, "kind": kind}
        self.channel.send(answer)

    def _add(self, told: Any) -> None:
        if not isinstance(told, list) or len(told) > _MAX_PROBES:
            raise UsageError("probes were expected")
        added = []
        for one in told:
            if not isinstance(one, list) or len(one) != 2 or type(one[0]) is not int or not 0 <= one[0] < _MAX_INDEX:
                raise UsageError("a probe has an index")
            index, spec = one[0], spec_from_json(one[1])
            if index not in self._indices:
                self._indices[index] = number = self._host.take_index()
                self._own[number], self._specs[index] = index, spec
                numbers = range(number * N_NUMBERS + 1, (number + 1) * N_NUMBERS + 1)
                self._numbers += numbers
                for one_of_them in numbers:
                    self._host.sink.watch(one_of_them)
            elif self._specs[index] != spec:
                raise UsageError(f"index {index} is another probe's")
            added.append(index)
        self._wanted.update(added)
        try:
            for target, place in self._places.items():
                self._put(target, added)
                place.asker.raise_refused()
        except ClewError:
            with contextlib.suppress(ClewError):
                self._take_out(added)
            raise
        self.channel.send({"do": "indices", "indices": [[index, self._indices[index]] for index in added]})
        self.tell_states()

    def _put(self, target: ProbedTarget, indices: Iterable[int]) -> None:
        place, wanted = self._places[target], []
        for index in indices:
            spec = self._specs[index]
            if spec.pid is not None and spec.pid not in target.origins:
                continue
            if not target.takes_events and spec.has_events:
                continue
            if index not in place.probes:
                find_table = partial(self._find_table, index)
                place.probes[index] = self._host.make_probe(target, spec, self._indices[index], find_table, place.asker)
            wanted.append(place.probes[index])
        if wanted:
            target.change(partial(target.add, wanted))

    def _find_table(self, index: int, probe: AskedProbe) -> AggregateTable:
        if index not in self._tables:
            wish = probe.spec.wish
            assert wish is not None
            self._tables[index] = self._host.room.make(wish, probe.wanted_sum.kinds())
        return self._tables[index]

    def _remove(self, told: Any) -> None:
        if not isinstance(told, list):
            raise UsageError("indices were expected")
        self._take_out([one for one in told if type(one) is int and one in self._indices])
        self._catch_up()
        self.tell_states()

    def _take_out(self, indices: Iterable[int]) -> None:
        indices = list(indices)
        self._wanted.difference_update(indices)
        gone = {self._indices[index] for index in indices}
        for target in self.targets:
            target.change(partial(target.remove, gone))

    def _catch_up(self) -> None:
        self._host.drain(self.targets)
        self.forward()
        self.tell_losses()

    def _reply(self, told: Any) -> None:
        waiting = self._held.pop(told, None) if type(told) is int else None
        if waiting is not None:
            waiting.target.reply(waiting.slot)

    # ---------------------------------------------------------------------------------------------- what it is told

    def hold(self, waiting: Waiting) -> bool:
        """Tell it of a thread that waits, if that is at a place of its; whether it is."""
        own = self._own_number(waiting.number)
        if own is None:
            return False
        if any(one.target is waiting.target and one.slot == waiting.slot for one in self._held.values()):
            # It waits still.
            return True
        self._n_held += 1
        self._held[self._n_held] = waiting
        told = {"do": "held", "held": self._n_held, "number": own, "pid": waiting.pid, "tid": waiting.tid}
        self.channel.send(told | {"real_pid": waiting.real_pid})
        return True

    def forward(self) -> None:
        """Tell it what was captured for it."""
        numbers = self._numbers
        taken = self._host.sink.take_together(numbers)
        by_pid: dict[int, list[tuple[int, Captured]]] = {}
        for number, some in zip(numbers, taken, strict=True):
            for one in some:
                by_pid.setdefault(one.pid, []).append((number, one))
        for pid, captured in by_pid.items():
            if self.channel.n_waiting > _MAX_WAITING_BYTES:
                self._n_lost += sum(len(one.heads) for _, one in captured)
                continue
            parts, pieces, tids = [], [], set()
            for number, one in captured:
                own = self._own_number(number)
                assert own is not None
                told_as = renumber(one, number, own)
                tids.update(np.unique(told_as.heads.view(CAPTURE_RECORD)[:, 0]["tid"]).tolist())
                parts.append([own, len(told_as.heads), told_as.payloads.shape[1]])
                pieces += [told_as.heads.tobytes(), told_as.payloads.tobytes()]
            told = {"do": "events", "pid": pid, "parts": parts, "names": self._new_names(tids)}
            self.channel.send(told, b"".join(pieces))

    def tell_losses(self) -> None:
        """Tell it how many events were lost since: whose they were is not known."""
        lost, self._n_lost = self._n_lost, 0
        for target, place in self._places.items():
            total = target.rings.count_lost()
            lost += total - place.n_lost
            place.n_lost = total
        if lost > 0:
            self.channel.send({"do": "lost", "count": lost})

    def tell_states(self) -> None:
        """Tell it where its probes are, where that has changed."""
        for target, place in self._places.items():
            if place.n_armed != target.n_armed:
                self.tell_state(target)
            self._tell_remarks(place)

    def tell_state(self, target: ProbedTarget) -> None:
        """Tell it where its probes are in a process."""
        place = self._places[target]
        place.n_armed = target.n_armed
        found = target.found_of(place.asker)
        kinds, sums = [], []
        for probe in found:
            index = self._own[probe.index]
            for number, form in probe.forms().items():
                told = form.wanted.told_kinds
                if told is not None:
                    kinds.append([index * N_NUMBERS + number - probe.index * N_NUMBERS, [int(one) for one in told]])
            if index in self._tables:
                own_kinds = [int(one) for one in probe.wanted_sum.kinds()]
                sums.append([index, own_kinds, shape_to_json(self._tables[index].shape)])
        armed = [
            [self._own[one.index], one.name, one.place.name, one.address, one.role, one.technique.name, one.reason]
            for one in target.armed_of(place.asker)
        ]
        self.channel.send(
            {
                "do": "state",
                "pid": target.pid,
                "kinds": kinds,
                "sums": sums,
                "armed": armed,
                "found": [self._own[probe.index] for probe in found],
                "names": [
                    [self._own[index], list(names.items())]
                    for index, names in target.place_names.items()
                    if index in self._own
                ],
                "missing": [[index, one.missing] for index, one in place.probes.items() if one.missing],
            }
        )
        self._tell_remarks(place)

    def _tell_remarks(self, place: _Place) -> None:
        new = place.asker.remarks[place.n_remarks :]
        place.n_remarks += len(new)
        for text in new:
            self.channel.send({"do": "remark", "text": text})

    def _new_names(self, tids: set[int]) -> list[list[Any]]:
        new = tids - self._named
        self._named |= new
        names = ((tid, target.rings.first_name(tid)) for tid in new for target in self._places)
        return [[tid, name.decode("latin-1")] for tid, name in names if name]

    def _own_number(self, number: int) -> int | None:
        """What it calls a capture of the host's number; None: it is none of its."""
        index, which = divmod(number - 1, N_NUMBERS)
        own = self._own.get(index)
        return None if own is None else own * N_NUMBERS + 1 + which


assert CAPTURE_RECORD.itemsize == RECORD_BYTES
