"""One probe of a session: what is done about a function, and what that comes to at each of its places.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from clew.address import Pid
from clew.capture.form import CaptureRoom, Form
from clew.dataclass import dataclass, field
from clew.process.capture_table import CaptureRow
from clew.protocol._constants import CaptureAction
from clew.sessions.where import Where

if TYPE_CHECKING:
    from clew.sessions.aggregate_table import AggregateTable
    from clew.sessions.wanted import Wanted

__all__ = ["PlaceProbe", "Wish", "stop_always"]

_ALWAYS: Final = Form([], []).pack()


class Wish(Enum):
    """What is done about a function: threads stop when it is called, or when it returns; or it is only recorded, or
    added up; or its calls go another way, and their threads are held when they return."""

    CALL = auto()
    RETURN = auto()
    LOG = auto()
    AGGREGATE = auto()
    INJECT = auto()
    DELAY = auto()

    @property
    def stops(self) -> bool:
        """Whether threads stop for it."""
        return self in (Wish.CALL, Wish.RETURN)


@dataclass
class PlaceProbe:
    """What is `wanted` at the function `where`, in all processes of a session, and what is done with it; `tells_left`:
    calls that are over without having returned are recorded, too."""

    number: int
    where: Where
    wanted: Wanted
    wish: Wish
    table: AggregateTable | None = None
    tells_left: bool = False
    waiting: set[tuple[Pid, int, int]] = field(default_factory=set)
    """By process, address and mark: where it names what is not loaded yet."""

    at: dict[tuple[Pid, int], dict[int, Form]] = field(default_factory=dict)
    """By process, 0 for all of them, and address: what is taken there, by mark."""
    _made: dict[int, tuple[Form, list[CaptureRow]]] = field(default_factory=dict)
    """By address: the form that was there last, and its rows."""

    @property
    def is_everywhere(self) -> bool:
        """Whether it takes the same in all processes, at an address that all have."""
        return self.where.is_system_call and not self.wanted.is_placed

    @property
    def n_places(self) -> int:
        """At how many places it is, in all processes."""
        return sum(map(len, self.at.values()))

    def take(self, pid: Pid, address: int, mark: int, form: Form) -> None:
        """It takes `form` at an address of a process."""
        self.at.setdefault((self._owner(pid), address), {})[mark] = form

    def _owner(self, pid: Pid) -> Pid:
        # There may be ten thousand processes, and five hundred probes of system calls.
        return Pid(0) if self.is_everywhere else pid

    def forms_of(self, pid: Pid) -> dict[tuple[int, int], Form]:
        """By address and mark what it takes in a process: a child has its parent's places, at the same addresses."""
        # Its own last: these are those that count.
        places = sorted(self.at.items(), key=lambda item: item[0][0] == pid)
        return {(address, mark): form for (_, address), forms in places for mark, form in forms.items()}

    def forms_at(self, pid: Pid, address: int) -> list[Form]:
        """All that it takes at one of a process."""
        return list(self.at.get((self._owner(pid), address), {}).values())

    def form_at(self, pid: Pid, address: int) -> Form | None:
        """What it takes at one of them."""
        known = [(owner, form) for (owner, at), forms in self.at.items() if at == address for form in forms.values()]
        return next((form for owner, form in known if owner == pid), known[0][1] if known else None)

    def room_of(self, form: Form) -> CaptureRoom:
        """How much of a place's room one of its forms takes."""
        # What the dispatcher works out takes none but for literals.
        return CaptureRoom(n_data_bytes=len(form.data)) if self.wish == Wish.INJECT else (form.entry or form).room

    def rows(self, address: int, form: Form, find_kind: Callable[[int, Form], int]) -> list[CaptureRow]:
        """What is captured for it at one of its addresses; `find_kind` numbers the calls whose returns are."""
        # Of a system call it is the same in each of many processes.
        known = self._made.get(address)
        if known is None or known[0] is not form:
            known = self._made[address] = form, self._make_rows(address, form, find_kind)
        return known[1]

    def _make_rows(self, address: int, form: Form, find_kind: Callable[[int, Form], int]) -> list[CaptureRow]:
        if self.wish == Wish.CALL:
            return [CaptureRow(address, 0, CaptureAction.STOP, form.pack())]
        if self.wish == Wish.RETURN:
            # What the condition says of a return is not known when the call begins.
            return [stop_always(address)]
        if self.wish == Wish.INJECT:
            return [CaptureRow(address, self.number, CaptureAction.INJECT, form.pack())]
        action = _ACTIONS.get(self.wish, CaptureAction.RECORD)
        shape = None if self.table is None else self.table.shape
        if form.entry is None:
            return [CaptureRow(address, self.number, action, form.pack(), shape)]
        # Who begins such a call is to know what is taken when it returns.
        kind = find_kind(self.number, form)
        return [
            CaptureRow(0, self.number, action, form.pack(), shape, kind, self.tells_left),
            CaptureRow(address, self.number, CaptureAction.CALL, form.entry.pack(), None, kind, self.tells_left),
        ]


_ACTIONS: Final = {Wish.AGGREGATE: CaptureAction.AGGREGATE, Wish.DELAY: CaptureAction.DELAY}


def stop_always(address: int) -> CaptureRow:
    """Threads stop at an address."""
    return CaptureRow(address, 0, CaptureAction.STOP, _ALWAYS)
