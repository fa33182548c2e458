"""Calls as lines of text or of JSON, while they are made: which of them, and what is told.

Runs in the controller.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

from clew.api.injection import injected_words
from clew.api.pieces import register_of
from clew.api.text import call_text
from clew.cli.api_tree import CallTree
from clew.cli.console import escape_control
from clew.dataclass import dataclass
from clew.protocol._constants import Injected
from clew.sessions.told_calls import iter_arguments, result_of

if TYPE_CHECKING:
    from clew.api.descriptions import Descriptions
    from clew.cli.api_choice import CallChoice
    from clew.sessions.api_calls import ApiCall
    from clew.sessions.call_stacks import CallFrame, CallStacks
    from clew.sessions.call_world import LiveWorld

__all__ = ["Teller", "Telling"]


@dataclass(frozen=True)
class Telling:
    """How calls are told: `limit` bytes of strings; whether `as_json` or `as_tree`, and with what descriptors stand for
    (`has_names`)."""

    limit: int
    as_json: bool = False
    as_tree: bool = False
    has_names: bool = False


def _marks(call: ApiCall) -> str:
    """What was done to the call, as strace has it."""
    given = " (INJECTED)" if call.injected & Injected.RESULT else ""
    delayed = " (DELAYED)" if call.injected & (Injected.DELAY_ENTER | Injected.DELAY_EXIT) else ""
    return given + delayed


class Teller:
    """Writes those calls to `out` that a choice has."""

    def __init__(
        self,
        out: TextIO,
        descriptions: Descriptions,
        telling: Telling,
        choice: CallChoice,
        stacks: CallStacks | None = None,
    ) -> None:
        self._out, self._descriptions, self._telling, self._choice = out, descriptions, telling, choice
        self._world = choice.world
        self._stacks = stacks
        self._tree = CallTree() if telling.as_tree else None

    def tell(self, calls: Sequence[ApiCall]) -> None:
        """Write some calls."""
        for call in self._choice.choose(calls):
            if self._tree is not None:
                self._tree.add(call, [self._named_text(call), *self._frame_lines(call)])
            elif self._telling.as_json:
                print(json.dumps(self._object(call), ensure_ascii=False), file=self._out)
            else:
                print(self._line(call), file=self._out)
                for line in self._frame_lines(call):
                    print(line, file=self._out)
        self._out.flush()

    def finish(self) -> None:
        """Write what waits for the end."""
        for line in () if self._tree is None else self._tree.lines():
            print(line, file=self._out)
        self._out.flush()

    def _names(self, call: ApiCall) -> dict[int, str]:
        if self._world is None or not self._telling.has_names:
            return {}
        return {index: self._descriptions.redacted(name) for index, name in self._world.names(call).items()}

    def _text(self, call: ApiCall) -> str:
        names, name_of = self._names(call), None
        if self._world is not None and self._telling.has_names:
            name_of = partial(self._name_of, self._world, call)
        return call_text(
            call.function,
            call.values,
            call.result,
            self._descriptions,
            limit=self._telling.limit,
            names=names,
            name_of=name_of,
        )

    def _name_of(self, world: LiveWorld, call: ApiCall, number: int) -> str | None:
        name = world.name_of(call, number)
        return None if name is None else self._descriptions.redacted(name)

    def _frames(self, call: ApiCall) -> list[CallFrame]:
        return [] if self._stacks is None else self._stacks.frames(call)

    def _frame_lines(self, call: ApiCall) -> list[str]:
        return [escape_control(str(frame)) for frame in self._frames(call)]

    def _named_text(self, call: ApiCall) -> str:
        library = "" if call.library is None else f"{call.library.rpartition('/')[2]}!"
        return library + self._text(call)

    def _line(self, call: ApiCall) -> str:
        """As strace -f -ttt -T -o has it."""
        took = "" if call.duration_ns is None else f" <{call.duration_ns / 1e9:.6f}>"
        return f"{call.tid} {call.time_ns / 1e9:.6f} {self._named_text(call)}{_marks(call)}{took}"

    def _object(self, call: ApiCall) -> dict[str, Any]:
        """As api/calls.schema.json has it."""
        seen = self._descriptions.with_values(call.function, [register_of(value) for value in call.values])
        return {
            "pid": call.pid,
            "tid": call.tid,
            "time_ns": call.time_ns,
            "duration_ns": call.duration_ns,
            "pc": f"{call.pc:#x}",
            "name": call.function.name,
            "library": call.library,
            "filter": call.function.filter,
            "described": call.function.parameters is not None,
            "arguments": list(iter_arguments(call, seen, self._descriptions, self._telling.limit)),
            **result_of(call, seen, self._descriptions),
            "failed": call.has_failed,
            "injected": injected_words(call.injected),
            "text": self._text(call),
        } | ({} if self._stacks is None else {"stack": [one.as_object() for one in self._frames(call)]})
