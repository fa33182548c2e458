"""What somebody wants of probes: where, what is taken or done there, under which condition.

Runs in the controller. Pure.
"""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from clew.address import Pid
from clew.dataclass import dataclass, replace
from clew.errors import UsageError
from clew.probing.locations.syntax import Location, NamePlace, parse_location
from clew.protocol._constants import Change
from clew.sessions.aggregate_table import AggregateWish

if TYPE_CHECKING:
    from clew.sessions.probes.following import Follower

__all__ = [
    "ContextField",
    "PlaceChange",
    "ProbeSpec",
    "RecordWish",
    "Trigger",
    "TriggerAction",
    "parse_context",
]

_TYPED: Final = re.compile(r"(?P<type>[A-Za-z_][\w ]*\**)\s*:\s*(?P<name>[A-Za-z_]\w*)\s*:\s*(?P<address>.+)")
_NAMED: Final = re.compile(r"(?P<name>[A-Za-z_]\w*)\s*=(?!=)\s*(?P<text>.+)")
_BACKTRACE: Final = re.compile(r"(?:backtrace|callstack)(?::(?P<depth>[0-9]+))?")
_STRINGS: Final = ("string", "str", "text")
_SYNONYMS: Final = {"vpid": "pid", "vtid": "tid", "procname": "comm", "cpu_id": "cpu"}
DEFAULT_FRAMES: Final = 16
MAX_FRAMES: Final = 128


@dataclass(frozen=True)
class ContextField:
    """A value that events have: an expression of captures, under a name; `is_address` for one that is shown as such.
    `backtrace` is not 0 for so many frames at most; `is_registers`: all general registers, the instruction's address
    and the flags. `better` is taken instead of `text` where debugging information knows of it."""

    name: str
    text: str = ""
    is_address: bool = False
    backtrace: int = 0
    is_registers: bool = False
    better: str = ""


class TriggerAction(Enum):
    """What clew does when a thread comes to a place, which waits for that."""

    SNAPSHOT = "snapshot"
    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    SIGNAL = "signal"
    RECORD = "record"


class Trigger(NamedTuple):
    """`signal`: which one the thread gets, of action SIGNAL."""

    action: TriggerAction
    signal: int = 0


class RecordWish(NamedTuple):
    """Where what `follower` follows from an event on is recorded, and how (`clew record --mode`)."""

    follower: Follower
    output: Path
    mode: str = "full"


class PlaceChange(NamedTuple):
    """What a thread does otherwise than the program has it: `where` is a register's name, or the expression of an
    address; `value` an expression."""

    kind: Change
    where: str
    value: str


@dataclass(frozen=True)
class ProbeSpec:
    """A probe, or several where `where` means several places. `is_function`: the function there, where it is entered
    and where it returns. `fields` are taken at the place or entry, `return_fields` where it returns. With `wish` there
    are no events: that is added up in the target, of functions where they return. With `consequence` there are none
    either: that is what happens there, of functions where they are entered, or with `at_return` where they return.

    With `pid` it is only in that process and what descends from it; with `path`, the absolute path of a program or
    library, only where that is loaded, and `where` is in that file unless it names another image.
    """

    name: str
    where: str
    is_function: bool = False
    fields: tuple[ContextField, ...] = ()
    return_fields: tuple[ContextField, ...] = ()
    condition: str | None = None
    with_inlined: bool = False
    wish: AggregateWish | None = None
    consequence: Trigger | PlaceChange | None = None
    at_return: bool = False
    pid: Pid | None = None
    path: str = ""

    @property
    def has_events(self) -> bool:
        """Whether it has events of its own."""
        return self.wish is None and self.consequence is None

    @property
    def leaving_fields(self) -> list[ContextField]:
        """What is taken where it returns. Of functions that a pattern means results are of several types: they are
        words."""
        where = self.location
        if isinstance(where, NamePlace) and where.may_be_pattern:
            return [replace(one, better="") for one in self.return_fields]
        return list(self.return_fields)

    @property
    def location(self) -> Location:
        """The place that is meant. Raises UsageError."""
        found = parse_location(self.where)
        return found._replace(image=self.path) if self.path and not found.image else found


def parse_context(text: str) -> list[ContextField]:
    """What `-t` asks for: `regs`, `reg:NAME`, `TYPE:NAME:ADDR`, `backtrace[:N]`; or an expression of captures, which
    may be given a name, `NAME=EXPRESSION`. Raises UsageError."""
    text = text.strip()
    if not text:
        raise UsageError("a context is missing: regs, reg:NAME, TYPE:NAME:ADDRESS, backtrace, or an expression")
    if text == "regs":
        return [ContextField("regs", is_registers=True)]
    if found := _BACKTRACE.fullmatch(text):
        depth = int(found["depth"] or DEFAULT_FRAMES)
        if not 0 < depth <= MAX_FRAMES:
            raise UsageError(f"{text}: a backtrace has 1 to {MAX_FRAMES} frames")
        return [ContextField("backtrace", backtrace=depth)]
    if text.startswith("reg:"):
        name = text.removeprefix("reg:").strip().removeprefix("$").removeprefix("%")
        if not name.isidentifier():
            raise UsageError(f"{text}: reg:NAME names a register")
        return [ContextField(name, f"${name}", is_address=True)]
    if found := _TYPED.fullmatch(text):
        kind, address = found["type"].strip(), found["address"]
        expression = f"str({address})" if kind in _STRINGS else f"*({kind} *)({address})"
        return [ContextField(found["name"], expression)]
    if found := _NAMED.fullmatch(text):
        return [ContextField(found["name"], found["text"])]
    if text == "retval":
        return [ContextField(text, text, better="var:$retval")]
    return [ContextField(text, _SYNONYMS.get(text, text))]
