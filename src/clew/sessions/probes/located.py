"""Finds the places of probes in processes that are followed, and has something captured at them.

Runs in the controller, in the thread that owns the target; what chooses functions is met where callbacks are called.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from clew.address import RemoteAddress
from clew.errors import CaptureError, ClewError, ControlError, TargetError, UsageError
from clew.probing.locations.in_process import ProcessPlace, ProcessPlaces, open_process
from clew.probing.locations.place import PlaceKind
from clew.probing.locations.syntax import AddressPlace, parse_location
from clew.process.maps import read_maps
from clew.sessions.place_probe import Wish
from clew.sessions.probes.followed_semaphores import FollowedSemaphores
from clew.sessions.wanted import Wanted
from clew.sessions.where import NOWHERE

if TYPE_CHECKING:
    from clew.address import Pid
    from clew.process.maps import Mapping
    from clew.recording.control.commands import Control
    from clew.recording.following.followed import FollowedProcess
    from clew.sessions.aggregate_table import AggregateTable
    from clew.sessions.call_probes import CallProbes
    from clew.sessions.calls import Call
    from clew.sessions.places import Places
    from clew.sessions.target import SessionTarget

__all__ = ["Located", "LocatedProbes", "Part", "check_place"]

MAX_WARNINGS: Final = 64


class Part(NamedTuple):
    """What is captured at a place, and what is done with it; `role` is `point`, `entry` or `return`."""

    wanted: Wanted
    wish: Wish
    role: str
    make_table: Callable[[], AggregateTable] | None = None
    """Where it is added up: what is of which type may be known only where there is a place."""


class Located:
    """A place `where`, in all processes of a session. Raises UsageError where that can be no place."""

    def __init__(self, where: str, parts: Sequence[Part], *, is_function: bool, with_inlined: bool = False) -> None:
        self.where, self.parts = where, parts
        self.location = parse_location(where)
        self.is_function, self.with_inlined = is_function, with_inlined
        self.numbers: list[int] = []
        """What its parts are known by now."""
        self.missing = ""
        """Why it is nowhere."""
        self.refusals: list[str] = []
        """Why it is not at some places."""
        self.warnings: list[str] = []
        """What else there is to tell people."""
        self._lock = threading.Lock()
        self._places: dict[tuple[FollowedProcess, int], ProcessPlace] = {}

    @property
    def places(self) -> list[tuple[FollowedProcess, ProcessPlace]]:
        """Where it is."""
        with self._lock:
            return [(followed, place) for (followed, _), place in self._places.items()]

    def take(self, followed: FollowedProcess, place: ProcessPlace) -> bool:
        """It is at that place; whether that is new."""
        with self._lock:
            if (followed, place.address) in self._places:
                return False
            self._places[followed, place.address] = place
            return True

    def leave(self, followed: FollowedProcess, place: ProcessPlace) -> None:
        """It can't be there."""
        with self._lock:
            del self._places[followed, place.address]

    def clear(self) -> None:
        """It is nowhere any more."""
        with self._lock:
            self._places.clear()

    def refuse(self, text: str) -> None:
        """Note why it is not at a place."""
        _note(self.refusals, text)

    def warn(self, text: str) -> None:
        """Note something for people."""
        _note(self.warnings, text)


class LocatedProbes:
    """Those of one session. `meet` is told of each process that code is looked at of first; `note_place` of each place
    that is found."""

    def __init__(
        self,
        target: SessionTarget,
        probes: CallProbes,
        meet: Callable[[FollowedProcess], None] = lambda followed: None,
        note_place: Callable[[Located, ProcessPlace], None] = lambda located, place: None,
    ) -> None:
        self._target, self._probes, self._meet, self._note_place = target, probes, meet, note_place
        self._armed: list[Located] = []
        self._images: dict[FollowedProcess, ProcessPlaces] = {}
        self._open: dict[FollowedProcess, contextlib.ExitStack] = {}
        self._given: tuple[Pid, ProcessPlaces, contextlib.ExitStack] | None = None
        self._places: Places | None = None
        self._semaphores = FollowedSemaphores()
        self._awaited: set[tuple[Located, FollowedProcess, int]] = set()
        """Choices of functions that are to come."""

    def know(self, pid: Pid, places: ProcessPlaces, opened: contextlib.ExitStack) -> None:
        """Take over what is known of the files of a process; `opened` lets go of that."""
        self._given = pid, places, opened

    def arm(self, some: Sequence[Located], note: Callable[[Located], None] = lambda located: None) -> None:
        """Have these captured, where they are and where they will be; `note` is told of each before any thread comes
        there. Raises CaptureError, UsageError, ControlError: then none of them is."""

        def steps(control: Control) -> Iterator[bool | None]:
            places = self._probes.open_places(control)
            live = control.processes.live
            # What takes its time is done while threads run.
            for followed in live:
                for one in some:
                    self._prepare(one, followed)

            def change() -> None:
                if self._places is None:
                    self._places = places
                    places.look_at_code(self._look)
                for one in some:
                    self._begin(places, one)
                    note(one)
                for followed in live:
                    self._arm(followed, some)

            yield from self._target.while_stopped(control, change)
            yield True

        self._target.run(steps)
        failed = [one for one in some if one.refusals and not one.places]
        if failed:
            for one in some:
                self.disarm(one)
            raise UsageError(failed[0].refusals[0])

    def disarm(self, one: Located) -> None:
        """Have it captured nowhere any more. Raises ControlError."""
        self._armed = [other for other in self._armed if other is not one]
        numbers, one.numbers = one.numbers, []
        one.clear()
        self._semaphores.release(one)
        for number in numbers:
            self._probes.remove(number)

    def close(self) -> None:
        """Have nothing wanted any more, and let go of files."""
        self._semaphores.close()
        for opened in self._open.values():
            opened.close()
        if self._given is not None:
            self._given[2].close()
        self._open.clear()
        self._images.clear()

    def _begin(self, places: Places, one: Located) -> None:
        pid, nowhere = self._target.pid, NOWHERE._replace(text=one.where)
        tables = [None if part.make_table is None else part.make_table() for part in one.parts]
        parts = zip(one.parts, tables, strict=True)
        one.numbers = [places.add(nowhere, part.wanted, [], pid, part.wish, table) for part, table in parts]
        self._armed = [*self._armed, one]

    def _look(self, followed: FollowedProcess, mappings: list[Mapping]) -> None:
        """Code was mapped. A child has what its parent has, at the same places."""
        if not mappings:
            self._semaphores.inherit(followed)
            return
        are_files = any(one.path.startswith("/") for one in mappings)
        # What is compiled at run time is in no file: nothing but addresses can mean it.
        self._arm(followed, [one for one in self._armed if are_files or isinstance(one.location, AddressPlace)])

    def _arm(self, followed: FollowedProcess, some: Sequence[Located]) -> None:
        images = self._renew(followed) if some else None
        if images is None or self._places is None:
            return
        for one in some:
            found = images.resolve(one.location, with_inlined=one.with_inlined)
            for text in found.warnings:
                one.warn(text)
            one.missing = "" if found.places or one.places else found.missing
            for place in found.places:
                if one.take(followed, place):
                    self._arm_at(followed, one, place, images)

    def _arm_at(self, followed: FollowedProcess, one: Located, place: ProcessPlace, images: ProcessPlaces) -> None:
        places = self._places
        assert places is not None
        try:
            if place.place is not None and place.place.kind == PlaceKind.CHOOSER:
                self._await_choice(followed, one, place)
                if one.is_function:
                    one.leave(followed, place)
                    return
            check_place(place, images, is_function=one.is_function)
            for number in one.numbers:
                places.extend(number, followed, place.address)
            self._semaphores.want(one, followed, place.semaphore)
            self._note_place(one, place)
        except (CaptureError, ControlError, TargetError, UsageError) as error:
            one.leave(followed, place)
            one.refuse(f"{one.where}: not at {place.name}: {error.message}")

    def _await_choice(self, followed: FollowedProcess, one: Located, place: ProcessPlace) -> None:
        """Code that chooses a function is about to be called, or was: be told of what it returns."""
        places, machine = self._places, self._target.machine()
        assert places is not None and place.place is not None
        if (one, followed, place.address) in self._awaited:
            return
        self._awaited.add((one, followed, place.address))
        chosen = place.place._replace(kind=PlaceKind.ENTRY)

        def meet(call: Call) -> None:
            its = ProcessPlace(RemoteAddress(call.registers[machine.result]), chosen)
            if call.pid == followed.pid and one.take(followed, its):
                for number in one.numbers:
                    places.extend(number, followed, its.address)
                self._note_place(one, its)

        number = places.add(NOWHERE, Wanted((), None, machine, self._target.images), [], followed.pid, Wish.RETURN)
        self._probes.note(number, place.name, meet, [])
        places.extend(number, followed, place.address)

    def _prepare(self, one: Located, followed: FollowedProcess) -> None:
        images = self._renew(followed)
        found = () if images is None else images.resolve(one.location, with_inlined=one.with_inlined).places
        for place in found:
            for part in one.parts:
                # What can't be taken there is told when it is to be.
                with contextlib.suppress(ClewError):
                    part.wanted.prepare(followed.pid, place.address)

    def _renew(self, followed: FollowedProcess) -> ProcessPlaces | None:
        """What a process has loaded now; None: it is gone."""
        try:
            mappings = read_maps(followed.memory_pid)
            if followed not in self._images:
                self._forget_ended()
                self._images[followed], self._open[followed] = self._open_images(followed)
                self._meet(followed)
            self._images[followed].renew(mappings)
        except (OSError, TargetError):
            return None
        return self._images[followed]

    def _open_images(self, followed: FollowedProcess) -> tuple[ProcessPlaces, contextlib.ExitStack]:
        if self._given is not None and self._given[0] == followed.pid:
            (_, places, opened), self._given = self._given, None
            return places, opened
        opened = contextlib.ExitStack()
        return opened.enter_context(open_process(followed.memory_pid)), opened

    def _forget_ended(self) -> None:
        for followed in [one for one in self._open if one.has_ended]:
            self._open.pop(followed).close()
            del self._images[followed]


def _note(texts: list[str], text: str) -> None:
    """Once, and no more than anybody reads."""
    if text not in texts and len(texts) < MAX_WARNINGS:
        texts.append(text)


def check_place(place: ProcessPlace, images: ProcessPlaces, *, is_function: bool) -> None:
    """Raises UsageError where threads can't come to a place, or it is not where a function begins that is asked for."""
    at = place.place
    if is_function and (at is None or at.distance):
        raise UsageError(f"{place.address:#x} is not where a function begins")
    image = next((one for one in images.images if one.has(place.address)), None)
    if at is None or image is None or not at.symbol:
        return
    start = image.file.find_instruction(at.address, at.address - at.distance)
    if start is not None and start != at.address:
        raise UsageError(f"it is inside of the instruction at {start + image.bias:#x}")
