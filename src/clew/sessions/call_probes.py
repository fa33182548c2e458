"""Call probes: callbacks that are called when a thread comes to a function, or back from it.

Runs in the controller: what is asked in any thread, callbacks in one of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from clew.dataclass import replace
from clew.errors import ControlError
from clew.sessions.calls import Call
from clew.sessions.chooser import Chooser
from clew.sessions.delivery import Delivery
from clew.sessions.place_probe import Wish
from clew.sessions.places import Places
from clew.sessions.stops import Stop
from clew.sessions.transforms.asking import Asking
from clew.sessions.visit_lane import VisitLane
from clew.sessions.wanted import Wanted
from clew.sessions.where import NOWHERE, Where
from clew.sessions.wishing import LogWish, Wishing

if TYPE_CHECKING:
    from clew.api.injection_plan import InjectionPlan
    from clew.binary.elf import ElfFile
    from clew.process.maps import Mapping
    from clew.recording.control.commands import Control
    from clew.recording.following.followed import FollowedProcess
    from clew.recording.following.holding import Holding
    from clew.sessions.aggregate_table import AggregateRoom, AggregateTable, AggregateWish
    from clew.sessions.aggregates import Aggregate
    from clew.sessions.call_logs import CallLog
    from clew.sessions.capture_sink import CaptureSink
    from clew.sessions.memory import Image
    from clew.sessions.target import SessionTarget

__all__ = ["CallProbe", "CallProbes", "Callback"]

T = TypeVar("T")
Callback = Callable[[Call], object]
_KEPT_DELAY: Final = "entry(delay_exit)"
"""How long a thread is to be held behind a call, 0: it is not."""


class CallProbe:
    """What `Session.on_call` and `on_return` give.

    `where` is what was asked for, `n_calls` how often `callback` was called.
    """

    def __init__(self, probes: CallProbes, number: int, where: str, callback: Callback, texts: list[str]):
        self._probes, self._number = probes, number
        self.where = where
        self.callback = callback
        self.n_calls = 0
        self._texts = texts

    @property
    def n_places(self) -> int:
        """At how many addresses it is: 0 as long as nothing that is loaded has such a function, or what is captured."""
        return self._probes.ask(lambda places: places.count(self._number))

    def remove(self) -> None:
        """No longer call the callback. One that is under way ends."""
        self._probes.remove(self._number)

    def __repr__(self) -> str:
        return f"<call probe at {self.where}>"


class _Asked(NamedTuple):
    """What is to be done about a function."""

    where: Where
    wanted: Wanted
    wish: Wish
    table: AggregateTable | None = None
    tells_left: bool = False


class CallProbes:
    """Those of one session."""

    def __init__(self, target: SessionTarget) -> None:
        self._target = target
        self._wishing = Wishing(target)
        self._places: Places | None = None
        self._by_number: dict[int, CallProbe] = {}
        self._answer: Callable[[Asking], None] = Asking.let_go
        self.delivery: Delivery[Stop | Asking] = Delivery(self._deal_with, lambda one: one.let_go())
        self._lane = VisitLane(self.delivery.fail)

    def add(
        self, where: str | int, capture: Iterable[str], condition: str | None, *, is_return: bool
    ) -> Callable[[Callback], CallProbe]:
        """What makes a probe of a callback. Raises CaptureError, UsageError."""
        place, wanted = self._wishing.read(where, capture, condition, has_returned=is_return)
        wish = Wish.RETURN if is_return else Wish.CALL

        def make(callback: Callback) -> CallProbe:
            def note(_: int, number: int) -> CallProbe:
                return self.note(number, place.text, callback, wanted.texts)

            return self._arm_all([_Asked(place, wanted, wish)], note)[0]

        return make

    def note(self, number: int, text: str, callback: Callback, texts: list[str]) -> CallProbe:
        """Have a callback called for a number, before any thread comes there."""
        self._by_number[number] = CallProbe(self, number, text, callback, texts)
        return self._by_number[number]

    def add_here(
        self,
        followed: FollowedProcess,
        address: int,
        capture: Iterable[str],
        condition: str | None,
        callback: Callback,
        mark: int = 0,
    ) -> int:
        """Call back in front of one instruction, from now on, only where the thread comes from a `mark`, if there is
        one; the probe's number. Raises CaptureError, ControlError."""
        text = f"{address:#x}"
        wanted = Wanted(capture, condition, self._target.machine(), self._target.images)
        assert self._places is not None
        number = self._places.add_here(followed, address, wanted, Wish.CALL, text, mark)
        # Before the thread goes on that waits for this.
        self.note(number, text, callback, wanted.texts)
        return number

    def record_here(self, followed: FollowedProcess, address: int, log: CallLog, mark: int = 0) -> None:
        """Record in a log what comes to one more instruction, from a `mark`. Raises ControlError."""
        assert self._places is not None
        self._places.extend(log.number, followed, address, mark)

    def answer_blocks(self, answer: Callable[[Asking], None]) -> None:
        """Have `answer` called for each thread that asks about a block, where callbacks are called."""
        self._answer = answer

    def meet_asking(self, asking: Asking) -> None:
        """Handle a thread that asks about a block."""
        self._meet(asking)

    @property
    def hear(self) -> Callable[[Holding], bool]:
        """Has threads of a process waited for, if that can be (Holding.be_heard)."""
        return self._lane.hear

    def log(
        self,
        sink: CaptureSink,
        where: str | int | None,
        capture: Iterable[str],
        condition: str | None,
        *,
        has_returned: bool = False,
    ) -> CallLog:
        """Record calls of a function, or their returns, which `sink` takes. Raises CaptureError, UsageError,
        ControlError."""
        return self.log_all(sink, [LogWish(where, capture, condition, has_returned=has_returned)])[0]

    def log_all(self, sink: CaptureSink, wishes: Iterable[LogWish]) -> list[CallLog]:
        """As `log`, for several at once: the process is stopped once for all of them."""
        from clew.sessions.call_logs import CallLog

        wishes = list(wishes)
        read = self._wishing.read_all(wishes)

        def note(index: int, number: int) -> CallLog:
            place, wanted = read[index]
            sink.watch(number)
            tells_left = wishes[index].tells_left
            return CallLog(self._target, sink, number, place.text, wanted, lambda: self.remove(number), tells_left)

        asked = [_Asked(*one, Wish.LOG, None, wish.tells_left) for one, wish in zip(read, wishes, strict=True)]
        return self._arm_all(asked, note)

    def log_in_images(
        self,
        sink: CaptureSink,
        choose: Callable[[Image, ElfFile], Iterable[LogWish]],
        take: Callable[[LogWish, CallLog], None],
    ) -> None:
        """Record what `choose` names in each image, now and when one is loaded; `take` is given the logs.

        Both are called in the thread that owns the target. Raises CaptureError, UsageError, ControlError.
        """
        from clew.sessions.call_logs import CallLog

        def read(image: Image, elf: ElfFile) -> Iterator[tuple[_Asked, tuple[LogWish, Where, Image]]]:
            for wish in choose(image, elf):
                capture, has_returned = list(wish.capture), wish.has_returned
                place, wanted = self._wishing.read(
                    wish.where, capture, wish.condition, has_returned=has_returned, keeps_types=True
                )
                # Where a resolver chooses is known later.
                there = place if wish.on_choice is None else NOWHERE
                yield _Asked(there, wanted, Wish.LOG, None, wish.tells_left), (wish, place, image)

        def note(asked: _Asked, told: tuple[LogWish, Where, Image], number: int) -> Chooser | None:
            wish, place, image = told
            sink.watch(number)
            remove = partial(self.remove, number)
            log = CallLog(self._target, sink, number, place.text, asked.wanted, remove, wish.tells_left)
            take(wish, log)
            return None if wish.on_choice is None else Chooser(place, image, log, wish.on_choice)

        self._arm_in_images(read, note)

    def inject(self, chosen: Sequence[tuple[Where, InjectionPlan]]) -> list[int]:
        """Have some system calls go another way; the numbers of what is asked for. Raises CaptureError,
        ControlError."""
        return self._arm_all([self._read_plan(*one) for one in chosen], lambda _, number: number)

    def inject_in_images(
        self,
        choose: Callable[[Image, ElfFile], Iterable[tuple[Where, InjectionPlan]]],
        take: Callable[[int, bool], None],
    ) -> None:
        """The same of functions that `choose` names in each image, now and when one is loaded; `take` is given the
        numbers, each with whether it is one of returns.

        Both are called in the thread that owns the target. Raises CaptureError, ControlError.
        """

        def read(image: Image, elf: ElfFile) -> Iterator[tuple[_Asked, None]]:
            for one in choose(image, elf):
                yield self._read_plan(*one), None
                if one[1].delays_return:
                    yield self._read_delay(one[0]), None

        def note(asked: _Asked, _: None, number: int) -> None:
            take(number, asked.wish == Wish.DELAY)

        self._arm_in_images(read, note)

    def _read_plan(self, where: Where, plan: InjectionPlan) -> _Asked:
        machine = replace(self._target.machine(of_system_calls=where.is_system_call), is_interpreted=True)
        return _Asked(where, Wanted(plan.expressions, plan.condition, machine, self._target.images), Wish.INJECT)

    def _read_delay(self, where: Where) -> _Asked:
        """What holds threads that return from a function, so long as was decided when they called it."""
        machine = self._target.machine(of_system_calls=False)
        wanted = Wanted([_KEPT_DELAY], _KEPT_DELAY, machine, self._target.images, has_returned=True)
        return _Asked(where, wanted, Wish.DELAY)

    def _arm_in_images(
        self,
        choose: Callable[[Image, ElfFile], Iterable[tuple[_Asked, T]]],
        note: Callable[[_Asked, T, int], Chooser | None],
    ) -> None:
        """Have things done about functions that `choose` names in each image, now and when one is loaded; `note` is
        given the number of each, and tells who chooses where it is, if that is not known yet."""

        def steps(control: Control) -> Iterator[bool | None]:
            places, images = self.open_places(control), self._target.images

            def look(followed: FollowedProcess, mappings: list[Mapping]) -> None:
                choosers: list[Chooser] = []
                for image in images.in_mappings(mappings, has_vdso=True):
                    elf = images.elf(image)
                    for one, what in [] if elf is None else choose(image, elf):
                        of_one = (one.where, one.wanted, mappings, followed.pid, one.wish)
                        try:
                            number = places.add(*of_one, tells_left=one.tells_left)
                        except ControlError as error:
                            followed.warnings.append(f"{one.where.text}: {error.message}")
                            continue
                        chooser = note(one, what, number)
                        if chooser is not None:
                            choosers.append(chooser)
                if choosers:
                    self._await_choices(places, followed, mappings, choosers)

            yield from self._target.while_stopped(control, lambda: places.look_at_code(look))
            yield True

        self._target.run(steps)

    def watch_code(self, look: Callable[[FollowedProcess, list[Mapping]], None]) -> None:
        """Have `look` called with what code is mapped in each process, now and whenever some is, before it is executed:
        in the thread that owns the target. Raises ControlError."""

        def steps(control: Control) -> Iterator[bool | None]:
            places = self.open_places(control)
            yield from self._target.while_stopped(control, lambda: places.look_at_code(look))
            yield True

        self._target.run(steps)

    def _await_choices(
        self, places: Places, followed: FollowedProcess, mappings: list[Mapping], choosers: list[Chooser]
    ) -> None:
        """Record what resolvers choose, or have chosen before."""
        from clew.sessions.choosers import Choosers

        machine, images = self._target.machine(), self._target.images
        all_of_them = Choosers(places, images, machine.result)
        for one in choosers:
            number = places.add(one.where, Wanted((), None, machine, images), mappings, followed.pid, Wish.RETURN)
            self.note(number, one.where.text, partial(all_of_them.meet_call, one), [])
        all_of_them.meet_chosen(followed, mappings, choosers)

    def add_up(
        self, room: AggregateRoom, where: str | int, wish: AggregateWish, *, has_returned: bool = False
    ) -> Aggregate:
        """Add up something at a function, or when it returns. Raises CaptureError, UsageError, ControlError."""
        return self.add_up_all(room, [(where, wish, has_returned)])[0]

    def add_up_all(
        self, room: AggregateRoom, wishes: Iterable[tuple[str | int, AggregateWish, bool]]
    ) -> list[Aggregate]:
        """As `add_up`, for several functions at once, each with whether it has returned."""
        from clew.sessions.aggregates import Aggregate

        told: list[tuple[Where, Wanted, AggregateWish, AggregateTable]] = []
        for where, wish, has_returned in wishes:
            taken = [*wish.by, *([] if wish.value is None else [wish.value])]
            place, wanted = self._wishing.read(
                where, taken, wish.condition, has_returned=has_returned, keeps_types=True
            )
            told.append((place, wanted, wish, room.make(wish, wanted.kinds())))

        def note(index: int, number: int) -> Aggregate:
            place, _, wish, table = told[index]
            return Aggregate(table, place.text, wish, lambda: self.remove(number))

        return self._arm_all([_Asked(place, wanted, Wish.AGGREGATE, table) for place, wanted, _, table in told], note)

    def _arm_all(
        self,
        asked: Sequence[_Asked],
        note: Callable[[int, int], T],
    ) -> list[T]:
        """Have things done about functions, for which the process is stopped once; what `note` makes of the place in
        `asked` and the number of each."""

        def steps(control: Control) -> Iterator[list[T] | None]:
            places = self.open_places(control)
            made: list[T] = []

            def change() -> None:
                mappings, pid = self._target.read_maps(), self._target.pid
                with places.together(pid):
                    for index, one in enumerate(asked):
                        number = places.add(
                            one.where, one.wanted, mappings, pid, one.wish, one.table, tells_left=one.tells_left
                        )
                        # Before any thread goes on: it may come there at once.
                        made.append(note(index, number))

            yield from self._target.while_stopped(control, change)
            yield made

        return self._target.run(steps)

    def open_places(self, control: Control) -> Places:
        """The places of the session, which begin when they are asked for first. Raises ControlError."""
        control.refuse_in_region("call probes")
        if self._places is None:
            self._places = Places(control.processes, self._target.images, self._meet, self._lane.hear)
        return self._places

    @property
    def is_here(self) -> bool:
        """Whether this is a thread that runs callbacks."""
        return self._lane.is_here or self.delivery.is_here

    def close(self) -> None:
        """Call nobody any more; a callback that is under way ends."""
        self._lane.close()
        self.delivery.close()

    def ask(self, question: Callable[[Places], int]) -> int:
        """A number that the places have, also once the session has ended; 0 as long as there are none."""
        return 0 if self._places is None else question(self._places)

    def remove(self, number: int) -> None:
        """Take a probe away."""

        def steps(control: Control) -> Iterator[bool | None]:
            if self._places is not None:
                places = self._places
                yield from self._target.while_stopped(control, lambda: places.remove(number))
            yield True

        self._target.run(steps)
        self._by_number.pop(number, None)

    def _deal_with(self, one: Stop | Asking) -> None:
        if isinstance(one, Asking):
            self._answer(one)
        else:
            self._handle(one)

    def _handle(self, stop: Stop) -> None:
        """Call the callbacks that a thread waits for."""
        changed: dict[str, int] = {}
        wanted = [(one, *items) for one in stop.all() for items in one.probes.items()]
        for told, number, form in wanted:
            probe = self._by_number.get(number)
            if probe is None:
                continue
            call = Call(told, form, probe._texts, self._target, told.kept.get(number, ()))
            if changed:
                call.take_over(changed)
            if call.holds:
                probe.n_calls += 1
                probe.callback(call)
            set_registers = call.changed_registers
            if set_registers is not None:
                changed = dict(set_registers)
                changed.pop(stop.thread.definition.program_counter)
        registers = None
        if changed:
            registers = [changed.get(name, before) for name, before in stop.thread.by_name.items()]
        stop.let_go(registers)

    def _meet(self, stop: Stop | Asking) -> None:
        """Handle a thread that stopped: here, where that is the callbacks' thread."""
        if self._lane.is_here:
            self.delivery.do(stop)
        else:
            self.delivery.tell(stop)
