"""What a recording answers to `clew control`, as lines for people.

Runs beside the controller. Names come from the target: they are escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from clew.cli.console import escape_control
from clew.recording.control.client import architecture_of, pc_of

if TYPE_CHECKING:
    from clew.protocol.words import HoldWord

__all__ = ["iter_lines"]

_REGISTERS_A_LINE = 4
_MOVING = ("step", "next", "step-over")
_REASONS: dict[HoldWord, str] = {
    "asked": "paused at",
    "stepped": "stepped to",
    "breakpoint": "breakpoint at",
    "capture": "captured at",
    "block": "about to translate",
}


def iter_lines(name: str, answer: dict[str, Any]) -> Iterator[str]:
    """The lines that say what command `name` was answered."""
    if "processes" in answer:
        yield from _iter_status(answer, only_moved=name in _MOVING)
    elif name == "detach":
        yield f"process {answer['pid']} goes on natively"
    elif name == "kill":
        yield f"process {answer['pid']} was sent SIGKILL"
    elif "places" in answer:
        n = answer["places"]
        yield f"{name}: {n} piece{'s' * (n != 1)} of code that is loaded now, and what is loaded later"


def _iter_status(answer: dict[str, Any], *, only_moved: bool) -> Iterator[str]:
    """`only_moved` has the registers of threads that did not move left out."""
    budget = "" if answer["budget"] is None else f", at most {answer['budget'] / 1e6:g} MB/s of order"
    # As a command calls it: the trace is one of mode full.
    mode = "auto" if budget and answer["mode"] == "full" else answer["mode"]
    yield f"recording {escape_control(answer['output'])}, mode {mode}{budget}"
    for kind in ("include", "exclude"):
        if answer[kind]:
            yield f"{kind}d, the last one last: {escape_control(', '.join(answer[kind]))}"
    for process in answer["processes"]:
        if answer["is_paused"]:
            state = "waits in front of its first instruction"
        else:
            state = "is held" if process["is_held"] else "runs"
        yield f"process {process['pid']} ({escape_control(process['executable'])}) {state}"
        for place in process["breakpoints"]:
            yield f"  breakpoint {place['address']:#x}  {escape_control(place['symbol'])}".rstrip()
        architecture = architecture_of(process)
        for thread in process["threads"]:
            registers = thread["registers"]
            where = f"{pc_of(process, thread):#x}  {escape_control(thread['symbol'])}".rstrip()
            yield f"  thread {thread['tid']} {_REASONS[thread['reason']]} {where}"
            if not only_moved or thread["reason"] != "asked":
                yield from _iter_registers(registers)
        for thread in process["elsewhere"]:
            call = thread["system_call"]
            what = "runs" if call is None or call < 0 else f"waits in {architecture.name_wait(call)}"
            yield f"  thread {thread['tid']} {what}"


def _iter_registers(registers: dict[str, int]) -> Iterator[str]:
    words = [f"{name:>7} {value:#018x}" for name, value in registers.items()]
    for first in range(0, len(words), _REGISTERS_A_LINE):
        yield "   " + "".join(words[first : first + _REGISTERS_A_LINE])
