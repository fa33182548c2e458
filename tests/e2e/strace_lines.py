"""Lines of strace -f -ttt -T and of `clew api`, brought to what both have: calls of each thread, without what differs.

Runs on the machine that tests. What differs, and why, is in `strace_kinds.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from clew.api.reading import load_built_in
from tests.e2e.strace_kinds import KINDS
from tests.e2e.strace_rules import Rule

__all__ = ["RULES", "Call", "read", "read_both", "split"]

Call = tuple[str, str, str]
"""Name, arguments and result, as far as two runs have the same."""

RULES = tuple(rule for kind in KINDS for rule in kind.rules)


def read_both(theirs: str, ours: str) -> tuple[list[list[Call]], list[list[Call]]]:
    """As `read`, of two runs: a number that is a thread in one of them is told as that in both."""
    numbers = {line.split(maxsplit=1)[0] for line in (*theirs.splitlines(), *ours.splitlines())}
    return read(theirs, numbers), read(ours, numbers)


def read(text: str, others: Set[str] = frozenset()) -> list[list[Call]]:
    """The calls of each thread, threads in the order of their first call, of strace -f -ttt -T's lines or clew's.

    Numbers of its threads, and `others`, are all told as one.
    """
    threads: dict[str, list[str]] = {}
    pending: dict[str, str] = {}
    for line in text.splitlines():
        found = re.fullmatch(r"(\d+) +\d+\.\d+ (.*?)(?: <\d+\.\d+>)?", line)
        assert found, line
        tid, call = found[1], found[2]
        if call.startswith(("+++", "---")):
            continue
        if call.endswith("<unfinished ...>"):
            pending[tid] = call.removesuffix("<unfinished ...>").rstrip()
            continue
        resumed = re.fullmatch(r"<\.\.\. \w+ resumed>(.*)", call)
        if resumed:
            # strace leaves the blank out behind a comma.
            begun = pending.pop(tid)
            call = f"{begun} {resumed[1].lstrip()}" if begun.endswith(",") else begun + resumed[1]
        call = re.sub(r"^syscall_(0x[0-9a-f]+)", _name_of, call)
        own = threads.setdefault(tid, [])
        # Who is traced is interrupted by what it ignores, too: its call goes on, and is told again.
        if own and " = ? ERESTARTSYS" in own[-1] and own[-1].split("(")[0] == call.split("(")[0]:
            own.pop()
        own.append(call)
    for tid in pending:
        threads.setdefault(tid, []).append(pending[tid] + " = ?")
    numbers = re.compile(r"\b(" + "|".join(sorted(others | threads.keys())) + r")\b")

    def hide_threads(call: Call) -> Call:
        """After the rules: a number that differs by what it measures may be a thread's by chance."""
        name, arguments, result = call
        return name, numbers.sub("PID", arguments), numbers.sub("PID", result)

    told = [[hide_threads(split(call)) for call in calls] for calls in threads.values()]
    # What a signal's end leaves open is told by strace alone.
    for calls in told:
        if calls[-1][2] == "?" and not calls[-1][0].startswith("exit"):
            calls.pop()
    return told


def _name_of(number: re.Match[str]) -> str:
    """The name of a call for which strace has none."""
    found = load_built_in().system_calls.get(int(number[1], 16))
    return number[0] if found is None else found.name


def split(call: str, rules: Sequence[Rule] = RULES) -> Call:
    """A line's name, arguments and result."""
    found = re.fullmatch(r"(\w+)\((.*)\) += (-?\w+|\?)(?: \((?:flags )?([^()]*)\))?(.*)", call)
    assert found, call
    name = found[1]
    result = f"{found[3]} {found[4]}" if found[4] else found[3]
    return name, plain(name, found[2], "arguments", rules), plain(name, result + found[5], "result", rules)


def plain(name: str, text: str, part: str, rules: Sequence[Rule]) -> str:
    """Text without what differs from run to run, or is written otherwise."""
    for rule in rules:
        if rule.part in ("", part) and re.fullmatch(rule.names, name):
            text = re.sub(rule.pattern, rule.other, text)
    return re.sub(r"\s*,\s*", ", ", text).strip()
