"""What somebody wants to be taken at a function: expressions, and the forms that these come to at each of its places.

Runs in the controller, in any thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from clew.address import Pid
from clew.capture.compiler import asks_program, compile_capture
from clew.dataclass import replace
from clew.errors import CaptureError
from clew.sessions.scopes import ProgramScope, UnloadedScope

if TYPE_CHECKING:
    from clew.capture.form import Form
    from clew.capture.machine import Machine
    from clew.capture.scope import Scope
    from clew.protocol._constants import CaptureType
    from clew.sessions.memory import Images

__all__ = ["Wanted"]


class Wanted:
    """The expressions `texts`, where `condition` holds, if there is one.

    What names no variables and types of the program's has one form everywhere. `has_returned`: it is taken when the
    function has. `keeps_types`: the values are of the same types at all places, those of the first one. Raises
    CaptureError where something is no expression.
    """

    def __init__(
        self,
        capture: Iterable[str],
        condition: str | None,
        machine: Machine,
        images: Images,
        *,
        has_returned: bool = False,
        keeps_types: bool = False,
        better: Mapping[int, str] | None = None,
        entry_condition: str | None = None,
    ) -> None:
        """`better` is what is taken instead of expressions, by their indices, if that is known at the first place.
        `entry_condition` chooses, when they begin, the calls that are taken when they return."""
        self.texts = [capture] if isinstance(capture, str) else list(capture)
        self._better = dict(better or {})
        self._condition, self._machine, self._images = condition, machine, images
        self._entry_condition = entry_condition
        self.has_returned, self._keeps_types = has_returned, keeps_types
        self._prepared: dict[tuple[Pid, int], Form] = {}
        self._kinds: list[CaptureType] | None = None
        conditions = [one for one in (condition, entry_condition) if one is not None]
        is_placed = [asks_program(text) for text in (*self.texts, *conditions, *self._better.values())]
        self.is_placed = any(is_placed)
        """Whether it has a form for each place."""
        self._common = (
            None if self.is_placed else self._compile(replace(machine, entry=machine if has_returned else None))
        )

    def prepare(self, pid: Pid, address: int) -> None:
        """Make the form at an address of process `pid`, which will be asked for. Raises CaptureError."""
        if self._common is None:
            form = self.form_at(pid, pid, address)
            if form is not None:
                self._prepared[pid, address] = form

    def form_at(self, pid: Pid, memory_pid: Pid, address: int, begins_at: int | None = None) -> Form | None:
        """The form at an address of process `pid`, whose memory `memory_pid` shows; None: what it names is not loaded
        yet. `begins_at`: where calls begin that have returned, if not there. Raises CaptureError."""
        if self._common is not None:
            return self._common
        # Once: later the process may have executed another program.
        prepared = self._prepared.pop((pid, address), None)
        if prepared is not None:
            return prepared
        with self._images.lock:
            scopes = self._scopes(memory_pid, address, begins_at)
            try:
                return self._compile(self._machine_of(scopes))
            except CaptureError:
                if not any(scope.is_waiting for scope in scopes):
                    raise
                self._sketch(memory_pid, address)
                return None

    def _scopes(
        self, pid: Pid, address: int, begins_at: int | None = None, *, is_sketch: bool = False
    ) -> list[ProgramScope]:
        """What names mean there; and, of what is taken when a call has returned, what they meant when it began."""
        from clew.process.processors.chosen import native_processor

        architecture = native_processor().architecture
        places = [(address, True), (begins_at or address, False)] if self.has_returned else [(address, False)]
        return [
            ProgramScope(self._images, pid, at, architecture, has_returned=has_returned, is_sketch=is_sketch)
            for at, has_returned in places
        ]

    def _machine_of(self, scopes: Sequence[Scope]) -> Machine:
        own, *before = (replace(self._machine, scope=scope) for scope in scopes)
        return replace(own, entry=before[0]) if before else own

    def _sketch(self, pid: Pid, address: int) -> None:
        """Find out of which types the values will be, before all is loaded that they name."""
        if self._keeps_types and self._kinds is None:
            with contextlib.suppress(CaptureError):
                self._compile(self._machine_of(self._scopes(pid, address, is_sketch=True)))

    def kinds(self) -> list[CaptureType]:
        """Of which types the values are. Raises CaptureError where that is not known yet."""
        if self._kinds is None:
            scopes = [UnloadedScope() for _ in range(1 + self.has_returned)]
            self._note(self._common or self._compile_texts(self._best(), self._machine_of(scopes)))
        assert self._kinds is not None
        return self._kinds

    @property
    def told_kinds(self) -> list[CaptureType] | None:
        """Of which types the values are, as far as a place is known; for somebody who knows none."""
        return self._kinds

    def be_told(self, kinds: list[CaptureType]) -> None:
        """Somebody else knows places, and of which types the values are there."""
        self._kinds = kinds

    def _compile(self, machine: Machine) -> Form:
        try:
            form = self._compile_texts(self._best(), machine)
        except CaptureError:
            if not self._better:
                raise
            form = self._compile_texts(self.texts, machine)
            self._better.clear()
        if self._kinds is None:
            self._note(form)
        return form

    def _best(self) -> list[str]:
        return [self._better.get(index, text) for index, text in enumerate(self.texts)]

    def _compile_texts(self, texts: list[str], machine: Machine) -> Form:
        kinds = self._kinds if self._keeps_types else None
        return compile_capture(texts, machine, self._condition, kinds, self._entry_condition)

    def _note(self, form: Form) -> None:
        self._kinds = [form.instructions[field].result for field in form.fields]
