"""Arguments for every system call, by what its description says of them: of which none may change the machine.

Runs on the machine that tests. `tests/programs/api/every_call.c` makes the calls, as nobody.
"""

from __future__ import annotations

from collections.abc import Iterator

from clew.api.description import Function, Parameter
from clew.api.reading import load_built_in

__all__ = ["WAITING", "lines"]

NOBODY_HAS = 0x7FFFFFFF
"""A number that no process, thread, segment, queue or set of semaphores has."""

ALWAYS = {
    # A new task that is like a child of fork; and one by a structure that is too small, or nowhere.
    "clone": ["17", "0", "0", "0", "0"],
    "clone3": ["B", "0"],
    # Who has no key to something makes it anew.
    "shmget msgget semget": [str(NOBODY_HAS), "0", "0"],
    # The first one is there on some machines, and 0 is the order to remove it.
    "shmctl msgctl semctl semop semtimedop msgsnd msgrcv shmat": [str(NOBODY_HAS)],
    # As these, but of processes.
    "setpriority ioprio_set": ["0", str(NOBODY_HAS)],
    "waitid": ["1", str(NOBODY_HAS)],
    # No core, in an hour: no processor time, or an alarm in a second, may end the process before it does by itself.
    "setrlimit": ["4"],
    "alarm": ["3600"],
}
"""By names: what the first arguments are, whatever is asked for."""

LEFT_OUT = frozenset({"rt_sigreturn"})
"""It takes registers from the stack, where nobody has put any; each call that waits returns from a handler by it."""

WAITING = frozenset({"pause", "rt_sigsuspend"})
"""What waits for a signal."""


def lines() -> Iterator[tuple[str, str]]:
    """Names of calls, and lines for the program: with bad addresses, and with good ones and small numbers."""
    always = {name: arguments for names, arguments in ALWAYS.items() for name in names.split()}
    for number, function in sorted(load_built_in().system_calls.items()):
        if function.name in LEFT_OUT:
            continue
        waits = "+" if function.name in WAITING else ""
        told = set()
        for pointer, plain in (("B", "0"), ("G", "0"), ("G", "1")):
            words = [word_of(one, pointer, plain) for one in function.arguments]
            given = always.get(function.name, [])
            words[: len(given)] = given
            line = " ".join([f"{number}{waits}", *words, *(["0"] * (6 - len(words)))])
            if line not in told:
                told.add(line)
                yield function.name, line


def word_of(parameter: Parameter, pointer: str, plain: str) -> str:
    """What an argument is."""
    if parameter.is_pointer:
        return pointer
    if parameter.raw_type in ("pid", "tid"):
        return str(NOBODY_HAS)
    if parameter.raw_type == "fd":
        return "F" if pointer == "G" else "-1"
    return {"signal": "10", "size": "8"}.get(parameter.raw_type, plain)


def result_of(function: Function, text: str) -> str:
    """A result that is the same in each run."""
    number, *rest = text.split()
    raw_type = "" if function.result is None else function.result.raw_type
    differs = raw_type in ("pid", "tid", "pointer") or function.name in ("time", "times")
    return f"{number} N" if differs and len(rest) == 1 and int(rest[0]) > 0 else text
