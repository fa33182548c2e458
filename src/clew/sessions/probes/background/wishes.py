"""What events of a session are asked for, as it is told to its controller: by numbers and texts alone.

Runs in the controller, and in whoever speaks to it. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from clew.address import MAX_PID, Pid
from clew.dataclass import dataclass, replace
from clew.errors import UsageError
from clew.sessions.probes.asked import check_spec
from clew.sessions.probes.specs import ProbeSpec, parse_context

__all__ = ["EventWish", "check_contexts"]

MAX_CHARACTERS: Final = 128
MAX_TEXTS: Final = 256


@dataclass(frozen=True)
class EventWish:
    """Events called `name`, or `name`_entry and `name`_exit with `is_function`, of the place `where`: in process `pid`,
    or, where that is 0, where the file `path` is loaded. Texts are as the command line has them."""

    name: str
    where: str
    is_function: bool
    pid: int = 0
    path: str = ""
    contexts: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    condition: str | None = None
    with_inlined: bool = False

    @property
    def place(self) -> tuple[str, bool, int, str, bool]:
        """What makes it another event than one of the same name."""
        return self.where, self.is_function, self.pid, self.path, self.with_inlined

    def with_contexts(self, contexts: list[str]) -> EventWish:
        """The same with more contexts; none is there twice."""
        return replace(self, contexts=tuple(dict.fromkeys([*self.contexts, *contexts])))

    def make_spec(self) -> ProbeSpec:
        """The probe that is meant. Raises UsageError."""
        fields = tuple(one for text in self.contexts for one in parse_context(text))
        leaving = tuple(one for text in self.returned or ("retval",) for one in parse_context(text))
        spec = ProbeSpec(
            self.name,
            self.where,
            self.is_function,
            fields,
            leaving if self.is_function else (),
            condition=self.condition,
            with_inlined=self.with_inlined,
            pid=Pid(self.pid) if self.pid else None,
            path=self.path,
        )
        check_spec(spec)
        _ = spec.location
        return spec

    def check(self) -> None:
        """Raises UsageError where it can't be of any event."""
        if not self.name or len(self.name) > MAX_CHARACTERS or not self.name.isprintable() or self.name.isspace():
            raise UsageError(f"an event has a name of 1 to {MAX_CHARACTERS} printable characters")
        if bool(self.pid) == bool(self.path):
            raise UsageError(f"{self.name}: either a process is given (--pid PID), or a file (--path PATH)")
        if self.path and not self.path.startswith("/"):
            raise UsageError(f"{self.name}: {self.path} is no absolute path")
        if self.returned and not self.is_function:
            raise UsageError(f"{self.name}: -r is of events of returns: with --function LOC")
        self.make_spec()

    def to_json(self) -> dict[str, Any]:
        """As it is told."""
        return {
            "name": self.name,
            "where": self.where,
            "is_function": self.is_function,
            "pid": self.pid,
            "path": self.path,
            "contexts": list(self.contexts),
            "returned": list(self.returned),
            "condition": self.condition,
            "with_inlined": self.with_inlined,
        }

    @classmethod
    def from_json(cls, told: Any) -> EventWish:
        """What somebody told. Raises UsageError."""
        if not isinstance(told, dict):
            raise UsageError("no event is told")
        pid, condition = told.get("pid", 0), told.get("condition")
        if type(pid) is not int or not 0 <= pid <= MAX_PID or not isinstance(condition, str | None):
            raise UsageError("an event is told by what it does not have")
        name, where, path = (_text(told.get(key, "")) for key in ("name", "where", "path"))
        contexts, returned = (_texts(told.get(key, [])) for key in ("contexts", "returned"))
        is_function, with_inlined = (told.get(key, False) is True for key in ("is_function", "with_inlined"))
        wish = cls(name, where, is_function, pid, path, contexts, returned, condition, with_inlined)
        wish.check()
        return wish


def check_contexts(contexts: Sequence[str]) -> None:
    """Raises UsageError where one can be no context."""
    check_spec(ProbeSpec("", "", fields=tuple(one for text in contexts for one in parse_context(text))))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError("a text was expected")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_TEXTS:
        raise UsageError(f"at most {MAX_TEXTS} texts were expected")
    return tuple(_text(one) for one in value)
