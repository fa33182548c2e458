"""What somebody asks to be done to calls: `openat:path=/etc/*:error=ENOENT:when=3..9+2`, read.

Runs in the controller. Pure; what it comes to for a call is in `injection_plan.py`.
"""

from __future__ import annotations

import errno
import re
import signal
from collections.abc import Callable
from typing import Final

from clew.api.vocabulary import MAX_ERRNO
from clew.dataclass import dataclass
from clew.errors import UsageError
from clew.protocol._constants import Injected

__all__ = [
    "ALWAYS",
    "Argument",
    "InjectionSpec",
    "When",
    "injected_words",
    "parse_injection",
    "read_signal",
    "read_time",
]

_PIECE: Final = re.compile(r"(?:[^:\\]|\\.)*", re.DOTALL)
_SAID: Final = re.compile(r"(?P<key>\w+)(?P<operator>[=&])(?P<value>.*)", re.DOTALL)
_WHEN: Final = re.compile(r"(?P<first>\d+)(?:\.\.(?P<last>\d+))?(?P<on>\+(?P<step>\d*))?", re.ASCII)
_TIME: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ns|us|ms|s|)", re.ASCII)
_UNIT_NS: Final = {"ns": 1, "us": 1_000, "": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_MAX_SIGNAL: Final = 64
_MAX_DELAY_NS: Final = 1 << 62
FOREVER: Final = (1 << 64) - 1


@dataclass(frozen=True)
class When:
    """Of the calls that a thread makes, counted from 1: from `first` to `last`, each `step`."""

    first: int = 1
    last: int = FOREVER
    step: int = 1


ALWAYS: Final = When()


@dataclass(frozen=True)
class Argument:
    """The argument `name` has the value `text`, as it was written; or all bits of it, if `are_bits`."""

    name: str
    text: str
    are_bits: bool


@dataclass(frozen=True)
class InjectionSpec:
    """What is done to the calls `what`: names, patterns of names, `%FILTER`, `IMAGE!NAME` of functions.

    Conditions: `path`, a pattern that one of the call's paths is to fit, `fd`, one of its descriptors, `arguments`, the
    expression `condition`, and `when`. Changes, each None if it is not made: `error`, a number, `result`, `signal`, and
    how many nanoseconds the thread waits in front of the call, and behind it.
    """

    text: str
    what: tuple[str, ...]
    path: str | None = None
    fd: int | None = None
    arguments: tuple[Argument, ...] = ()
    condition: str | None = None
    when: When = ALWAYS
    error: int | None = None
    result: int | None = None
    signal: int | None = None
    delay_enter_ns: int | None = None
    delay_exit_ns: int | None = None

    @property
    def has_result(self) -> bool:
        """Whether the call is not made."""
        return self.error is not None or self.result is not None


def injected_words(bits: int) -> list[str]:
    """What was done to a call, by bits of enum Injected: `result`, `delay_enter`, `delay_exit`, `signal`."""
    return [one.name.lower() for one in Injected if bits & one]


def parse_injection(text: str) -> InjectionSpec:
    r"""Read what is asked for; `\:` stands for a colon that divides nothing. Raises UsageError."""
    what, *pieces = _split(text)
    names = tuple(name.strip() for name in what.split(","))
    if not all(names):
        raise UsageError(f"{text!r}: which calls? Say WHAT:CHANGE, as in openat:error=ENOENT")
    said: dict[str, object] = {}
    arguments: list[Argument] = []
    for piece in pieces:
        found = _SAID.fullmatch(piece)
        if found is None:
            raise UsageError(f"{text!r}: {piece!r} is neither NAME=VALUE nor NAME&BITS; of functions say IMAGE!NAME")
        key, value = found["key"], found["value"]
        if found["operator"] == "&" or key not in _KEYS:
            if key in _STRACES:
                raise UsageError(f"{text!r}: {key} is not done here")
            arguments.append(Argument(key, value, found["operator"] == "&"))
            continue
        name, read = _KEYS[key]
        if name in said:
            raise UsageError(f"{text!r}: {key} is said twice")
        try:
            said[name] = read(value)
        except ValueError as error:
            raise UsageError(f"{text!r}: {key}={value}: {error}") from error
    if not said.keys() & _CHANGES:
        raise UsageError(f"{text!r}: what is to be done? Say one of {', '.join(_CHANGE_WORDS)}")
    return InjectionSpec(text, names, arguments=tuple(arguments), **said)  # type: ignore[arg-type]


def _split(text: str) -> list[str]:
    pieces, at = [], 0
    while True:
        found = _PIECE.match(text, at)
        assert found is not None
        pieces.append(re.sub(r"\\(:)", r"\1", found[0]))
        at = found.end()
        if at >= len(text):
            return pieces
        if text[at] != ":":
            raise UsageError(f"{text!r}: a backslash at the end")
        at += 1


def _number(text: str, least: int, most: int) -> int:
    try:
        value = int(text, 0)
    except ValueError:
        raise ValueError("no number") from None
    if not least <= value <= most:
        raise ValueError(f"from {least} to {most}")
    return value


def _read_fd(text: str) -> int:
    return _number(text, 0, (1 << 31) - 1)


def _read_result(text: str) -> int:
    return _number(text, -(1 << 63), (1 << 64) - 1)


def _read_error(text: str) -> int:
    known: object = getattr(errno, text, None) if text.isupper() else None
    if isinstance(known, int):
        return known
    if text.isidentifier():
        raise ValueError("no error is called so")
    return _number(text, 1, MAX_ERRNO)


def read_signal(text: str) -> int:
    """The number of a signal, which is given by name or number. Raises ValueError."""
    name = text if text.startswith("SIG") else f"SIG{text}"
    known = signal.Signals.__members__.get(name)
    if known is not None:
        return int(known)
    if text.isidentifier():
        raise ValueError("no signal is called so")
    return _number(text, 1, _MAX_SIGNAL)


def read_time(text: str) -> int:
    """Nanoseconds, of a text such as `10ms`. Raises ValueError."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError("a time is a number of microseconds, or one with ns, us, ms or s behind it")
    time_ns = round(float(found["number"]) * _UNIT_NS[found["unit"]])
    if time_ns > _MAX_DELAY_NS:
        raise ValueError("nobody waits so long")
    return time_ns


def _read_when(text: str) -> When:
    found = _WHEN.fullmatch(text)
    if found is None:
        raise ValueError("FIRST[..LAST][+[STEP]], as in 3, 3+, 3..9 or 3..9+2")
    first, step = int(found["first"]), int(found["step"] or 1)
    last = int(found["last"]) if found["last"] else FOREVER if found["on"] else first
    if not 1 <= first <= last <= FOREVER or not 1 <= step <= FOREVER:
        raise ValueError("calls are counted from 1, the last one is not before the first, and a step is 1 at least")
    return When(first, last, step)


def _read_text(text: str) -> str:
    if not text:
        raise ValueError("nothing is said")
    return text


_KEYS: Final[dict[str, tuple[str, Callable[[str], object]]]] = {
    "path": ("path", _read_text),
    "fd": ("fd", _read_fd),
    "if": ("condition", _read_text),
    "when": ("when", _read_when),
    "error": ("error", _read_error),
    "retval": ("result", _read_result),
    "result": ("result", _read_result),
    "signal": ("signal", read_signal),
    "delay_enter": ("delay_enter_ns", read_time),
    "delay_exit": ("delay_exit_ns", read_time),
}
_CHANGES: Final = frozenset({"error", "result", "signal", "delay_enter_ns", "delay_exit_ns"})
_CHANGE_WORDS: Final = ("error", "retval", "signal", "delay_enter", "delay_exit")
_STRACES: Final = frozenset({"syscall", "poke_enter", "poke_exit"})
"""What strace can do besides."""
