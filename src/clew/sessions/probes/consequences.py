"""What happens where events of probes are: what clew does then, and what threads do otherwise than their program has.

Runs in the controller. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from clew.api.injection import read_signal, read_time
from clew.dataclass import dataclass, replace
from clew.errors import UsageError
from clew.process.processors.chosen import native_processor
from clew.protocol._constants import Change
from clew.sessions.probes.asked import N_CHANGED
from clew.sessions.probes.specs import PlaceChange, ProbeSpec, Trigger, TriggerAction

__all__ = ["AskedChanges", "find_changes", "parse_trigger"]

_ENTRY: Final = "_entry"
_EXIT: Final = "_exit"
_ASSIGNED: Final = re.compile(r"(?P<left>[^=]+?)\s*(?<![=!<>])=(?!=)\s*(?P<value>.+)", re.DOTALL)
_POKED: Final = {8: Change.POKE8, 16: Change.POKE16, 32: Change.POKE32, 64: Change.POKE64}
_TYPE: Final = re.compile(r"(?:u?int|[ui])(?P<bits>8|16|32|64)(?:_t)?")


@dataclass(frozen=True)
class AskedChanges:
    """What is asked for on a command line, each as `[EVENT:]TEXT`: registers set, results of functions that are not
    executed, waits, and memory written."""

    sets: Sequence[str] = ()
    results: Sequence[str] = ()
    delays: Sequence[str] = ()
    pokes: Sequence[str] = ()


def parse_trigger(specs: Sequence[ProbeSpec], event: str, action: str) -> list[ProbeSpec]:
    """The probes that do something at an event of `specs`: `NAME[:FILTER]`, and which of TriggerAction. Raises
    UsageError."""
    name, _, signal = action.partition(":")
    try:
        kind = TriggerAction(name)
    except ValueError:
        raise UsageError(f"--on {event} {action}: {', '.join(one.value for one in TriggerAction)}") from None
    if (kind == TriggerAction.SIGNAL) != bool(signal):
        raise UsageError(f"--on {event} {action}: a signal is named, and only then: signal:SIGUSR1")
    trigger = Trigger(kind, _read(read_signal, signal, action) if signal else 0)
    places, condition = _split(specs, event)
    if not places or (condition is not None and not condition.strip()):
        raise UsageError(f"--on {event}: there is no such event; there are {', '.join(_names(specs))}")
    return [replace(one, consequence=trigger, condition=condition) for one in places]


def find_changes(specs: Sequence[ProbeSpec], asked: AskedChanges) -> list[ProbeSpec]:
    """The probes that change what the program does. Without an event's name they are where all of `specs` are, at
    functions where these are entered. Raises UsageError."""
    found: list[ProbeSpec] = []
    for text in asked.sets:
        places, left, value = _assignment(specs, text, "--set", "REGISTER=EXPRESSION")
        name = left.removeprefix("$").removeprefix("%")
        if name not in _general_registers():
            raise UsageError(f"--set {text}: no event and no general register is called so; the stack pointer stays")
        found += _at(places, PlaceChange(Change.REGISTER, name, value))
    for text in asked.pokes:
        places, left, value = _assignment(specs, text, "--poke", "TYPE:ADDRESS=EXPRESSION")
        kind, _, address = left.partition(":")
        known = _TYPE.fullmatch(kind.strip())
        if known is None or not address.strip():
            raise UsageError(f"--poke {text}: TYPE:ADDRESS=EXPRESSION, a type as u8 or i32")
        found += _at(places, PlaceChange(_POKED[int(known["bits"])], address.strip(), value))
    for text in asked.delays:
        places, rest = _places(specs, text)
        found += _at(places, PlaceChange(Change.DELAY, "0", str(_read(read_time, rest.strip(), f"--delay {text}"))))
    for text in asked.results:
        places, rest = _places(specs, text)
        if not all(one.is_function and not one.at_return for one in places):
            raise UsageError(f"--return {text}: only where functions are entered")
        found += _at(places, PlaceChange(Change.RESULT, "0", rest))
    return found


def _general_registers() -> list[str]:
    """Those that can be set."""
    definition = native_processor().definition
    return [name for name in definition.held_registers[:N_CHANGED] if name != definition.stack_pointer]


def _at(places: Sequence[ProbeSpec], change: PlaceChange) -> Iterator[ProbeSpec]:
    for one in places:
        yield replace(one, consequence=change)


def _assignment(specs: Sequence[ProbeSpec], text: str, option: str, form: str) -> tuple[list[ProbeSpec], str, str]:
    places, rest = _places(specs, text)
    found = _ASSIGNED.fullmatch(rest.strip())
    if found is None:
        raise UsageError(f"{option} {text}: {form}")
    return places, found["left"].strip(), found["value"]


def _places(specs: Sequence[ProbeSpec], text: str) -> tuple[list[ProbeSpec], str]:
    """Where `[EVENT:]TEXT` is to happen, and the rest of it."""
    places, rest = _split(specs, text)
    if places and rest is not None:
        return places, rest
    return [_bare(one) for one in specs], text


def _split(specs: Sequence[ProbeSpec], text: str) -> tuple[list[ProbeSpec], str | None]:
    """The places of the event with whose name a text begins, and what is behind its colon. Of several the longest one
    counts: there may be colons in names."""
    names = sorted({name for name in _names(specs) if text == name or text.startswith(f"{name}:")}, key=len)
    if not names:
        return [], None
    name = names[-1]
    places = [
        replace(_bare(spec), at_return=spec.is_function and own.endswith(_EXIT) and own != spec.name)
        for spec in specs
        for own in _names_of(spec)
        if own == name
    ]
    return places, text[len(name) + 1 :] if len(text) > len(name) else None


def _bare(spec: ProbeSpec) -> ProbeSpec:
    """The same place, where nothing is taken."""
    return replace(spec, fields=(), return_fields=())


def _names(specs: Sequence[ProbeSpec]) -> list[str]:
    return [name for spec in specs for name in _names_of(spec)]


def _names_of(spec: ProbeSpec) -> tuple[str, ...]:
    if not spec.is_function:
        return (spec.name,)
    return (spec.name + _ENTRY, spec.name + _EXIT, spec.name)


def _read(read: Callable[[str], int], text: str, where: str) -> int:
    try:
        return read(text)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None
